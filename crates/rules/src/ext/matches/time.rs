//! `-m time`: date, time of day, weekday and day of the month.
//!
//! Without `--datestop` the tool stores the last second of 31 bits, and prints it. Source:
//! iptables-extensions(8); kernel `net/netfilter/xt_time.c`.

use crate::error::What;
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::value;

const DAY: u32 = 86_400;
const LAST_OF_DAY: u32 = DAY - 1;
const LAST_DATE: u32 = i32::MAX as u32;
const ALL_WEEKDAYS: u32 = 0xfe;
const ALL_MONTHDAYS: u32 = 0xffff_fffe;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "time",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("datestart"),
        Opt::value("datestop"),
        Opt::value("timestart"),
        Opt::value("timestop"),
        Opt::flag("contiguous"),
        Opt::value("weekdays").invertible(),
        Opt::value("monthdays").invertible(),
        Opt::flag("utc"),
        Opt::flag("kerneltz").alias(&["localtz"]),
    ],
    support: Support::Parsed,
    parse,
};

/// Bit n of a weekday mask is the n-th name; the week starts on Monday with bit 1.
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

#[derive(Debug)]
struct Time {
    /// Seconds since the epoch, without a time zone.
    dates: (u32, u32),
    /// Seconds since midnight.
    times: (u32, u32),
    weekdays: u32,
    monthdays: u32,
    kernel_zone: bool,
    contiguous: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.one_of(&["utc", "kerneltz"])?;
    let date = |name, default| args.get(name).map_or(Ok(default), parse_date);
    let time = |name, default| args.get(name).map_or(Ok(default), parse_time);
    let times = (time("timestart", 0)?, time("timestop", LAST_OF_DAY)?);
    let contiguous = args.has("contiguous");
    if contiguous && times.0 < times.1 {
        return Err(args.expected("--timestop before --timestart, for --contiguous,"));
    }
    Ok(Box::new(Time {
        dates: (date("datestart", 0)?, date("datestop", LAST_DATE)?),
        times,
        weekdays: args.get("weekdays").map_or(Ok(ALL_WEEKDAYS), parse_weekdays)?,
        monthdays: args.get("monthdays").map_or(Ok(ALL_MONTHDAYS), parse_monthdays)?,
        kernel_zone: args.has("kerneltz"),
        contiguous,
    }))
}

/// A decimal number of at most `max`, leading zeros allowed.
fn decimal(text: &str, max: u32) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|value| digits && *value <= max)
}

fn parse_date(given: &Given<'_>) -> Result<u32, What> {
    date(given.text())
        .ok_or_else(|| given.expected("a date YYYY[-MM[-DD[Thh[:mm[:ss]]]]] 1970-2038"))
}

fn date(text: &str) -> Option<u32> {
    let (day, time) = text.split_once('T').map_or((text, None), |(day, time)| (day, Some(time)));
    let mut parts = day.split('-');
    let year = decimal(parts.next()?, 2038).filter(|year| *year >= 1970)?;
    let month = parts.next().map_or(Some(1), |part| decimal(part, 12)).filter(|m| *m > 0)?;
    let day = parts.next();
    if parts.next().is_some() || (time.is_some() && day.is_none()) {
        return None;
    }
    let day = day.map_or(Some(1), |part| decimal(part, 31)).filter(|day| *day > 0)?;
    let seconds = time.map_or(Some(0), |time| time_of_day(time, 1))?;
    Some((days_before(year, month) + day - 1) * DAY + seconds)
}

fn parse_time(given: &Given<'_>) -> Result<u32, What> {
    time_of_day(given.text(), 2).ok_or_else(|| given.expected("a time of day hh:mm[:ss]"))
}

/// `hh[:mm[:ss]]` with at least `least` of its parts.
fn time_of_day(text: &str, least: usize) -> Option<u32> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() < least || parts.len() > 3 {
        return None;
    }
    let part = |index: usize, max| parts.get(index).map_or(Some(0), |part| decimal(part, max));
    Some(part(0, 23)? * 3600 + part(1, 59)? * 60 + part(2, 59)?)
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn month_len(year: u32, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the epoch to the first of a month.
fn days_before(year: u32, month: u32) -> u32 {
    let years: u32 = (1970..year).map(|year| 365 + u32::from(is_leap(year))).sum();
    years + (1..month).map(|month| month_len(year, month)).sum::<u32>()
}

fn parse_weekdays(given: &Given<'_>) -> Result<u32, What> {
    let day = |text: &str| match decimal(text, 7) {
        Some(number) => (number > 0).then_some(number),
        None => {
            let named = |name: &&str| text.len() >= 2 && text.get(..2) == name.get(..2);
            WEEKDAYS.iter().position(named).map(|index| index as u32 + 1)
        }
    };
    let mask = day_mask(given.text(), day)
        .ok_or_else(|| given.expected("a comma list of Mon Tue Wed Thu Fri Sat Sun or 1-7"))?;
    Ok(if given.invert { mask ^ ALL_WEEKDAYS } else { mask })
}

fn parse_monthdays(given: &Given<'_>) -> Result<u32, What> {
    let day = |text: &str| value::number(text, 31).filter(|day| *day > 0).map(|day| day as u32);
    let mask =
        day_mask(given.text(), day).ok_or_else(|| given.expected("a comma list of days 1-31"))?;
    Ok(if given.invert { mask ^ ALL_MONTHDAYS } else { mask })
}

fn day_mask(list: &str, day: impl Fn(&str) -> Option<u32>) -> Option<u32> {
    list.split(',').try_fold(0, |mask, part| Some(mask | 1 << day(part)?))
}

/// The days of a mask, named by `name`.
fn day_list(mask: u32, name: impl Fn(u32) -> String) -> String {
    let days: Vec<String> = (1..32).filter(|day| mask >> day & 1 == 1).map(name).collect();
    days.join(",")
}

fn time_text(seconds: u32) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn date_text(date: u32) -> String {
    let mut days = date / DAY;
    let (mut year, mut month) = (1970, 1);
    while days >= 365 + u32::from(is_leap(year)) {
        days -= 365 + u32::from(is_leap(year));
        year += 1;
    }
    while days >= month_len(year, month) {
        days -= month_len(year, month);
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}T{}", days + 1, time_text(date % DAY))
}

/// No days at all are printed as not all days; the tool prints an empty list, which it does not read.
fn print_days(option: &str, mask: u32, all: u32, name: impl Fn(u32) -> String, to: &mut Printer) {
    let invert = mask == 0;
    to.option(invert, option, day_list(if invert { all } else { mask }, name));
}

impl Match for Time {
    fn print(&self, to: &mut Printer) {
        if self.times != (0, LAST_OF_DAY) {
            to.option(false, "timestart", time_text(self.times.0));
            to.option(false, "timestop", time_text(self.times.1));
        }
        if self.monthdays != ALL_MONTHDAYS {
            print_days("monthdays", self.monthdays, ALL_MONTHDAYS, |day| day.to_string(), to);
        }
        if self.weekdays != ALL_WEEKDAYS {
            let name = |day: u32| WEEKDAYS.get(day as usize - 1).copied().unwrap_or("").to_owned();
            print_days("weekdays", self.weekdays, ALL_WEEKDAYS, name, to);
        }
        if self.dates.0 != 0 {
            to.option(false, "datestart", date_text(self.dates.0));
        }
        // The tool leaves out the first second of all, which then reads back as the last one.
        to.option(false, "datestop", date_text(self.dates.1));
        if self.kernel_zone {
            to.flag(false, "kerneltz");
        }
        if self.contiguous {
            to.flag(false, "contiguous");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_and_print() {
        for text in ["1970-01-01T02:00:00", "2000-02-29T23:59:59", "2038-12-31T00:00:00"] {
            assert_eq!(date_text(date(text).unwrap()), text);
        }
        assert_eq!(date_text(LAST_DATE), "2038-01-19T03:14:07");
        assert_eq!(date_text(date("2012").unwrap()), "2012-01-01T00:00:00");
        assert_eq!(date_text(date("2012-03-04T5").unwrap()), "2012-03-04T05:00:00");
        assert_eq!(date_text(date("2001-02-30").unwrap()), "2001-03-02T00:00:00");
        for wrong in ["1969", "2039", "2000-13", "2000-00", "2000-01-32", "2000T01", "2000-1-1-1"] {
            assert_eq!(date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_need_minutes() {
        assert_eq!(time_of_day("1:2", 2), Some(3720));
        assert_eq!(time_of_day("23:59:59", 2), Some(LAST_OF_DAY));
        for wrong in ["1", "24:00", "1:60", "1:2:3:4", "", ":", "-1:0", "+1:0"] {
            assert_eq!(time_of_day(wrong, 2), None, "{wrong}");
        }
    }
}
