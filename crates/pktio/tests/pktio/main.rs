//! Capture files: built by hand, and those of tcpdump's own tests. Frames in memory of their own.
//! TUN devices, as root.

mod capture_files;
mod memory;
mod tcpdump_corpus;
#[cfg(target_os = "linux")]
mod tun;
