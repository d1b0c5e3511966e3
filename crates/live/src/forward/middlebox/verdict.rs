//! [`Verdict`]: the verdict of a middlebox on a frame.

/// The verdict of a middlebox on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Verdict {
    /// The frame goes on.
    #[default]
    Pass = 0,
    /// The frame is dropped.
    Drop = 1,
    /// The frame leaves through its port of arrival.
    Back = 2,
    /// The middlebox failed over the frame: [`OnError`](crate::config::OnError) decides.
    Error = 3,
}

impl Verdict {
    /// The verdict of a descriptor; any other number is an error.
    pub(super) fn of(byte: u8) -> Self {
        match byte {
            0 => Self::Pass,
            1 => Self::Drop,
            2 => Self::Back,
            _ => Self::Error,
        }
    }
}
