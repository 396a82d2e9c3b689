//! `statusline.serviceHealth`: the services whose health is probed.

use serde_json::{Value, json};

use super::table::{FieldType, Spec};
use crate::client::json::Raw;

/// A service whose health is probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceHealth {
    /// What it is called; names the file that keeps the last answer.
    pub name: String,
    /// What is asked.
    pub url: String,
    /// Seconds that an answer is shown.
    pub ttl_sec: u64,
    /// Milliseconds that a probe may take.
    pub timeout_ms: u64,
}

impl Default for ServiceHealth {
    fn default() -> ServiceHealth {
        ServiceHealth { name: String::new(), url: String::new(), ttl_sec: 30, timeout_ms: 2000 }
    }
}

impl FieldType for Vec<ServiceHealth> {
    /// Entries without a name and an address are left out; the others stand.
    fn read(raw: Raw<'_>, _: &Spec) -> Option<Vec<ServiceHealth>> {
        Some(raw.items()?.into_iter().filter_map(service).collect())
    }

    fn value(&self) -> Option<Value> {
        let items = self.iter();
        Some(
            items
                .map(|s| json!({"name": s.name, "url": s.url, "ttlSec": s.ttl_sec, "timeoutMs": s.timeout_ms}))
                .collect(),
        )
    }
}

fn service(raw: Raw<'_>) -> Option<ServiceHealth> {
    let object = raw.object()?;
    let text = |key: &str| object.str(key).map(|text| text.trim().to_string()).filter(|text| !text.is_empty());
    let count = |key: &str, default: u64| object.get(key).and_then(Raw::u64).filter(|&n| n > 0).unwrap_or(default);
    let default = ServiceHealth::default();
    Some(ServiceHealth {
        name: text("name")?,
        url: text("url")?,
        ttl_sec: count("ttlSec", default.ttl_sec),
        timeout_ms: count("timeoutMs", default.timeout_ms),
    })
}
