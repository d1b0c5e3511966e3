//! Capture files: built by hand, and those of tcpdump's own tests. Frames in memory of their own.

mod capture_files;
mod memory;
mod tcpdump_corpus;
