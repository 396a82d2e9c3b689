//! Editing settings.json: only our keys change.
