//! The commands as they are typed: exit codes, output, refusals.

mod command;
mod record;
mod shell;
mod test_command;
mod why_command;
