//! The working-tree answer and the git anchors.
