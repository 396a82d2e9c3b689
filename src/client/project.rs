//! Which project folder of the client belongs to a session.
