//! (to come) task_change.
