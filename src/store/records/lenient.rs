//! Reading records that another program, or a hand, may have written: a leaf of a wrong type reads as its default and
//! harms no neighbour.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serializer};
use serde_json::Value;

/// `#[serde(deserialize_with = "lenient::leaf")]`: the default of the type where the value is of another one.
pub fn leaf<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(de: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(de)?).unwrap_or_default())
}

/// A list whose elements of a wrong type are left out.
pub fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(de: D) -> Result<Vec<T>, D::Error> {
    Ok(match Value::deserialize(de)? {
        Value::Array(items) => items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect(),
        _ => Vec::new(),
    })
}

/// A moment or a count: a whole number, its fraction cut off; 0 for anything else.
pub fn whole<'de, D: Deserializer<'de>>(de: D) -> Result<i64, D::Error> {
    Ok(to_whole(&Value::deserialize(de)?).unwrap_or_default())
}

/// Like [`whole`], but none for what is no number.
pub fn maybe_whole<'de, D: Deserializer<'de>>(de: D) -> Result<Option<i64>, D::Error> {
    Ok(to_whole(&Value::deserialize(de)?))
}

fn to_whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().filter(|number| number.abs() < 9.1e18).map(|number| number as i64))
}

/// Writes a number the way the JavaScript original does: whole numbers without a fraction.
pub fn number<S: Serializer>(number: &f64, ser: S) -> Result<S::Ok, S::Error> {
    if number.fract() == 0.0 && number.abs() < 9.0e15 {
        ser.serialize_i64(*number as i64)
    } else {
        ser.serialize_f64(*number)
    }
}

/// [`number`] for a value that may be absent (null).
pub fn maybe_number<S: Serializer>(value: &Option<f64>, ser: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => number(value, ser),
        None => ser.serialize_none(),
    }
}
