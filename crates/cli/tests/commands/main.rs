//! The commands as they are typed: exit codes, output, refusals.

mod command;
mod why_command;
