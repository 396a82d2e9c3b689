//! (to come) anchors.
