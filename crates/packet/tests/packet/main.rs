//! The parser through the public door: any bytes, and crafted frames.

mod any_bytes;
mod craft;
mod joined;
mod superframe;
mod unfinished;
