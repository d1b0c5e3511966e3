//! Where packets go on a host: by hand, and as this machine's kernel decides.

mod decisions;
mod kernel;
