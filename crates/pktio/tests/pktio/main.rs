//! Capture files: built by hand, and those of tcpdump's own tests.

mod capture_files;
mod tcpdump_corpus;
