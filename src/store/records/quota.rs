//! Quota figures and the marks of their refresh.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lenient;

/// `claude-usage-cache-<uid>.json`: the last good figures, and how the last attempt to renew them ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct QuotaCache {
    /// The figures; they outlive failures.
    #[serde(flatten)]
    pub figures: Figures,
    /// Why the last attempt failed; none after a good one.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When the figures came in, epoch milliseconds; the last attempt where there are none.
    #[serde(deserialize_with = "lenient::maybe_whole")]
    pub fetched_at: Option<i64>,
    /// Not to be tried again before, epoch milliseconds.
    #[serde(deserialize_with = "lenient::maybe_whole", skip_serializing_if = "Option::is_none")]
    pub next_try_at: Option<i64>,
    /// Failures in a row.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// Keys that si does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What the usage endpoint tells. Percentages are 0 to 100; reset times as they came, ISO 8601 or a number.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Figures {
    /// Percent of the five-hour block.
    #[serde(deserialize_with = "lenient::leaf", serialize_with = "lenient::maybe_number")]
    pub session_usage: Option<f64>,
    /// When the block ends.
    pub session_reset_at: Value,
    /// Percent of the seven days.
    #[serde(deserialize_with = "lenient::leaf", serialize_with = "lenient::maybe_number")]
    pub weekly_usage: Option<f64>,
    /// When the seven days end.
    pub weekly_reset_at: Value,
    /// Whether usage beyond the plan is bought.
    #[serde(deserialize_with = "lenient::leaf")]
    pub extra_usage_enabled: bool,
    /// Its monthly limit, in cents.
    #[serde(deserialize_with = "lenient::leaf", serialize_with = "lenient::maybe_number")]
    pub extra_usage_limit: Option<f64>,
    /// What of it is used, in cents.
    #[serde(deserialize_with = "lenient::leaf", serialize_with = "lenient::maybe_number")]
    pub extra_usage_used: Option<f64>,
    /// The same in percent.
    #[serde(deserialize_with = "lenient::leaf", serialize_with = "lenient::maybe_number")]
    pub extra_usage_utilization: Option<f64>,
}

/// `claude-usage-lock-<uid>.json`: when a refresh last started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuotaLock {
    /// Epoch milliseconds.
    #[serde(deserialize_with = "lenient::whole")]
    pub t: i64,
}
