//! Days of the calendar, as TOML writes them, and the days between them.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use toml::value::{Date, Datetime};

/// A day, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Datetime", into = "Datetime")]
pub(crate) struct Day(Date);

/// Today as [`Day::number`] counts.
pub(crate) fn today() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64 / 86_400)
}

impl Day {
    /// Days since 1970-01-01 (Hinnant's `days_from_civil`: years begin in March, so a leap day ends its year).
    pub(crate) fn number(self) -> i64 {
        let (month, day) = (i64::from(self.0.month), i64::from(self.0.day));
        let year = i64::from(self.0.year) - i64::from(month <= 2);
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468
    }
}

impl FromStr for Day {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Day> {
        let date: Datetime =
            text.parse().with_context(|| format!("`{text}`: expected YYYY-MM-DD"))?;
        Day::try_from(date).map_err(anyhow::Error::msg)
    }
}

impl TryFrom<Datetime> for Day {
    type Error = String;

    fn try_from(date: Datetime) -> Result<Day, String> {
        match date {
            Datetime { date: Some(day), time: None, offset: None } => Ok(Day(day)),
            other => Err(format!("`{other}`: expected a date alone, YYYY-MM-DD")),
        }
    }
}

impl From<Day> for Datetime {
    fn from(day: Day) -> Datetime {
        day.0.into()
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
