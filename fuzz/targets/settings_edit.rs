//! Calls the properties of `tests/properties/settings_edit.rs` with what the fuzzer comes up with.
#![no_main]

#[path = "../../tests/properties/mod.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|data: &[u8]| properties::settings_edit::check(data));
