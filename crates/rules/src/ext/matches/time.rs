//! `-m time`: date, time of day, weekday and day of the month, of the packet's own time.
//!
//! It is UTC unless `--kerneltz` asks for the zone that the kernel holds ([`host::Zone`]). The kernel looks at whole
//! seconds that it counts on with its tick: near the second at which the answer changes it is open.
//!
//! Without `--datestop` the tool stores the last second of 31 bits, and prints it. Source:
//! iptables-extensions(8); Linux 6.18 `net/netfilter/xt_time.c`.

use crate::error::What;
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;
use conntrack::SECOND;

const DAY: u32 = 86_400;
/// A tick of the slowest clock, in nanoseconds: the kernel's seconds may be late by this.
const TICK: u64 = 10_000_000;
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
    support: Support::Evaluated,
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

/// Year, month and day of the month of a day since the epoch.
fn civil(day: u32) -> (u32, u32, u32) {
    let mut days = day;
    let (mut year, mut month) = (1970, 1);
    while days >= 365 + u32::from(is_leap(year)) {
        days -= 365 + u32::from(is_leap(year));
        year += 1;
    }
    while days >= month_len(year, month) {
        days -= month_len(year, month);
        month += 1;
    }
    (year, month, days + 1)
}

fn date_text(date: u32) -> String {
    let (year, month, day) = civil(date / DAY);
    format!("{year:04}-{month:02}-{day:02}T{}", time_text(date % DAY))
}

/// No days at all are printed as not all days; the tool prints an empty list, which it does not read.
fn print_days(option: &str, mask: u32, all: u32, name: impl Fn(u32) -> String, to: &mut Printer) {
    let invert = mask == 0;
    to.option(invert, option, day_list(if invert { all } else { mask }, name));
}

impl Time {
    /// Whether a second in the rule's zone is meant, counted since the epoch.
    fn holds(&self, second: i64) -> bool {
        let (start, stop) = (i64::from(self.dates.0), i64::from(self.dates.1));
        if !(start..=stop).contains(&second) {
            return false;
        }
        let (day, time) = (second / i64::from(DAY), (second % i64::from(DAY)) as u32);
        let (from, to) = self.times;
        let (begun, not_over) = (time >= from, time <= to);
        let wraps = from >= to;
        if !(begun && not_over || wraps && (begun || not_over)) {
            return false;
        }
        // After midnight it is still the day before.
        let day = day - i64::from(wraps && self.contiguous && not_over);
        self.is_day(day)
    }

    /// Whether a day is meant, counted since the epoch, a Thursday. The day before that is none of any week.
    fn is_day(&self, day: i64) -> bool {
        let Ok(day) = u32::try_from(day) else { return false };
        let weekday = (day + 3) % 7 + 1;
        self.weekdays >> weekday & 1 == 1
            && (self.monthdays == ALL_MONTHDAYS || self.monthdays >> civil(day).2 & 1 == 1)
    }

    /// Returns the second in the rule's zone, counted since the epoch; `None` where the zone is not known.
    fn in_zone(&self, second: u64, transit: &Transit<'_, '_>) -> Option<i64> {
        let second = i64::try_from(second).ok()?;
        match (self.kernel_zone, &transit.host.zone) {
            (false, _) => Some(second),
            (true, zone) => Some(second + i64::from(zone.as_ref()?.offset_at(second)?)),
        }
    }
}

impl Match for Time {
    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        // Packets that somebody described come one after the other, and nobody knows on which day.
        let is_described = transit.packet.described().is_some();
        let Some(now) = transit.time.filter(|_| !is_described) else { return Outcome::MAYBE };
        let at = |time: u64| match self.in_zone(time / SECOND, transit) {
            Some(second) => Outcome::from_bool(self.holds(second)),
            None => Outcome::MAYBE,
        };
        at(now.saturating_sub(TICK)).or(at(now.saturating_add(TICK)))
    }

    fn asks_for(&self) -> Option<&'static str> {
        self.kernel_zone.then_some("the time zone of the host's kernel is not known (--tz)")
    }

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
    use crate::ext::kit::probe::{ipv4, read};
    use crate::family::{Family, Hook};
    use host::{Host, Zone};
    use packet::{Checksums, Link, Packet};

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

    /// What a rule says at a time, given as a date with a fraction of a second in milliseconds.
    fn at(rule: &str, when: &str, millis: i64, zone: Option<Zone>) -> Outcome {
        let bytes = ipv4(17, &[0; 8]);
        let rule = read(Family::Ipv4, &format!("-m time {rule}")).unwrap();
        let host = Host { zone, ..Host::default() };
        let mut bytes = bytes.to_vec();
        let len = bytes.len();
        let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
        let new = Transit::new(&mut packet, Family::Ipv4, Hook::Forward, &host);
        let nanos = i64::from(date(when).unwrap()) * 1_000 + millis;
        let transit = Transit { time: Some(nanos as u64 * 1_000_000), ..new };
        rule.tables[0].chains[0].rules[0].matches[0].body.evaluate(&transit)
    }

    #[test]
    fn days_and_times_of_the_packet_decide() {
        use Outcome as O;
        // 24 November 2026 was a Tuesday.
        for (rule, when, outcome) in [
            ("--timestart 08:00 --timestop 17:00", "2026-11-24T08:00:01", O::YES),
            ("--timestart 08:00 --timestop 17:00", "2026-11-24T07:59:59", O::NO),
            ("--timestart 22:00 --timestop 06:00", "2026-11-24T23:00", O::YES),
            ("--timestart 22:00 --timestop 06:00", "2026-11-24T05:00", O::YES),
            ("--timestart 22:00 --timestop 06:00", "2026-11-24T12:00", O::NO),
            ("--timestart 10:00 --timestop 10:00", "2026-11-24T12:00", O::YES),
            ("--weekdays Tue", "2026-11-24T12:00", O::YES),
            ("! --weekdays Tue", "2026-11-24T12:00", O::NO),
            ("--weekdays Mon --timestart 22:00 --timestop 06:00", "2026-11-24T05:00", O::NO),
            (
                "--weekdays Mon --timestart 22:00 --timestop 06:00 --contiguous",
                "2026-11-24T05:00",
                O::YES,
            ),
            (
                "--weekdays Tue --timestart 22:00 --timestop 06:00 --contiguous",
                "2026-11-24T23:00",
                O::YES,
            ),
            ("--monthdays 24,29", "2026-11-24T12:00", O::YES),
            ("--monthdays 29", "2028-02-29T12:00", O::YES),
            ("--monthdays 1", "2028-02-29T12:00", O::NO),
            ("--datestart 2026-11-24T12:00", "2026-11-24T11:59:58", O::NO),
            ("--datestop 2026-11-24T12:00", "2026-11-24T12:00:00", O::YES),
            ("--datestop 2026-11-24T12:00", "2026-11-24T12:00:01", O::NO),
        ] {
            assert_eq!(at(rule, when, 500, None), outcome, "{rule} at {when}");
        }
        let from_eight =
            |when, millis| at("--timestart 08:00 --timestop 17:00", when, millis, None);
        assert_eq!(from_eight("2026-11-24T08:00:00", 5), O::MAYBE, "within a tick");
        assert_eq!(from_eight("2026-11-24T08:00:00", 11), O::YES);
    }

    #[test]
    fn the_kernel_s_zone_counts_where_it_is_asked_for() {
        let rule = "--timestart 08:00 --timestop 17:00 --kerneltz";
        let zone = |text: &str| Some(Zone::parse(text).unwrap());
        let morning = "2026-11-24T07:30";
        assert_eq!(at(rule, morning, 500, None), Outcome::MAYBE);
        assert_eq!(at(rule, morning, 500, zone("UTC")), Outcome::NO);
        assert_eq!(at(rule, morning, 500, zone("+01:00")), Outcome::YES);
        assert_eq!(at(rule, morning, 500, zone("Europe/Berlin")), Outcome::YES);
        assert_eq!(at(rule, "2026-07-24T06:30", 500, zone("Europe/Berlin")), Outcome::YES);
        assert_eq!(at(rule, "2026-07-24T06:30", 500, zone("-01:00")), Outcome::NO);
    }
}
