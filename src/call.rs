//! One call of a hook, as every room that serves it is handed it.

use crate::client::payload::Payload;
use crate::config::Config;
use crate::env::Env;
use crate::log::Log;
use crate::store::{Sid, Store};

/// What every hook is handed.
pub struct Call<'a> {
    /// The surroundings.
    pub env: &'a Env,
    /// The files.
    pub store: Store<'a>,
    /// The effective configuration.
    pub config: &'a Config,
    /// The debug log, for this session.
    pub log: Log<'a>,
    /// What the client sent.
    pub payload: &'a Payload<'a>,
    /// The session, as file names carry it.
    pub sid: Sid,
}
