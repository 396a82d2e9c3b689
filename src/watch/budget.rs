//! The token budget: what the tool calls of a session have put into its context, estimated.

use crate::store::{Sid, StateFile, Store};

/// Token budgets outside of this are nonsense.
pub const BUDGET_RANGE: std::ops::RangeInclusive<u64> = 1..=10_000_000;
/// Tool counts outside of this are nonsense.
pub const COUNT_RANGE: std::ops::RangeInclusive<u64> = 1..=1_000_000;

/// The estimate of tokens in context: the budget, which only grows, less what compactions have rolled up.
pub fn estimate(store: Store<'_>, sid: &Sid) -> u64 {
    let budget = store.read_count(StateFile::TokenBudget(sid), BUDGET_RANGE).unwrap_or(0);
    if budget == 0 { 0 } else { budget.saturating_sub(super::rollup::rolled_through(store, sid)) }
}
