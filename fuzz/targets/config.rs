//! Calls the properties of `tests/properties/config.rs` with what the fuzzer comes up with.
#![no_main]

#[path = "../../tests/properties/mod.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|data: &[u8]| properties::config::check(data));
