//! Faults: every hook and the status line in every kind of broken world, killed at any moment, and for a long time from
//! many processes at once. What si owes its host holds in all of them, and what was stored is still there.
//!
//! Short by default. `SI_FAULTS=full` tries every spelling of every hook on every damaged file, `SI_KILLS=200` kills at
//! that many moments, `SI_SOAK=20000` makes that many calls.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests make files, start programs, read their switches and say how much they ran"
)]

#[path = "../it/support.rs"]
mod support;

mod clock;
mod corrupt;
mod disk;
mod kept;
mod kill;
mod large;
mod locks;
mod pipes;
mod soak;
mod world;
