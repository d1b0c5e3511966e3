//! The struct of the study's job: twelve fields, 56 bytes packed, 64 as a C compiler aligns them; and the job itself.
//!
//! Contract: numbers are in host byte order. The job reads all fields, changes each by what all of them add up to, and
//! writes all, so nothing of it can be left out. Java's half is `dev.tamis.bench.Fields`.

/// How many fields there are.
pub const COUNT: usize = 12;
/// Bytes of a packed struct: no byte is lost between its fields.
pub const PACKED_SIZE: usize = 56;
/// Bytes of an aligned one.
pub const ALIGNED_SIZE: usize = 64;

/// Bytes of each field, in their order.
pub const SIZES: [usize; COUNT] = [1, 2, 4, 8, 1, 2, 4, 8, 2, 8, 8, 8];
/// Where each field of a packed struct begins.
pub const PACKED: [usize; COUNT] = [0, 1, 3, 7, 15, 16, 18, 22, 30, 32, 40, 48];
/// Where each field of an aligned struct begins.
pub const ALIGNED: [usize; COUNT] = [0, 2, 4, 8, 16, 18, 20, 24, 32, 40, 48, 56];

/// Reads one field, widened to 64 bits.
#[inline(always)]
#[must_use]
pub fn get(bytes: &[u8], at: usize, size: usize) -> u64 {
    let mut word = [0; 8];
    word[..size].copy_from_slice(&bytes[at..at + size]);
    u64::from_le_bytes(word)
}

/// Writes one field, as many of the value's low bytes as it has.
#[inline(always)]
pub fn put(bytes: &mut [u8], at: usize, size: usize, value: u64) {
    bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
}

/// The study's job on one struct: what the fields added up to. Written out, as a loop over sizes would copy by `memcpy`.
#[inline(always)]
pub fn change<const SIZE: usize>(bytes: &mut [u8; SIZE], offsets: &[usize; COUNT]) -> u64 {
    let values = [
        get_word::<1>(bytes, offsets[0]),
        get_word::<2>(bytes, offsets[1]),
        get_word::<4>(bytes, offsets[2]),
        get_word::<8>(bytes, offsets[3]),
        get_word::<1>(bytes, offsets[4]),
        get_word::<2>(bytes, offsets[5]),
        get_word::<4>(bytes, offsets[6]),
        get_word::<8>(bytes, offsets[7]),
        get_word::<2>(bytes, offsets[8]),
        get_word::<8>(bytes, offsets[9]),
        get_word::<8>(bytes, offsets[10]),
        get_word::<8>(bytes, offsets[11]),
    ];
    let sum = values.iter().fold(0, |sum: u64, value| sum.wrapping_add(*value));
    let changed = |field: usize| values[field].wrapping_add(sum).wrapping_add(field as u64 + 1);
    put_word::<1>(bytes, offsets[0], changed(0));
    put_word::<2>(bytes, offsets[1], changed(1));
    put_word::<4>(bytes, offsets[2], changed(2));
    put_word::<8>(bytes, offsets[3], changed(3));
    put_word::<1>(bytes, offsets[4], changed(4));
    put_word::<2>(bytes, offsets[5], changed(5));
    put_word::<4>(bytes, offsets[6], changed(6));
    put_word::<8>(bytes, offsets[7], changed(7));
    put_word::<2>(bytes, offsets[8], changed(8));
    put_word::<8>(bytes, offsets[9], changed(9));
    put_word::<8>(bytes, offsets[10], changed(10));
    put_word::<8>(bytes, offsets[11], changed(11));
    sum
}

#[inline(always)]
fn get_word<const SIZE: usize>(bytes: &[u8], at: usize) -> u64 {
    get(bytes, at, SIZE)
}

#[inline(always)]
fn put_word<const SIZE: usize>(bytes: &mut [u8], at: usize, value: u64) {
    put(bytes, at, SIZE, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offsets_are_those_of_a_compiler() {
        #[repr(C, packed)]
        struct Packed(u8, u16, u32, u64, u8, u16, u32, u64, u16, u64, u64, u64);
        #[repr(C)]
        struct Aligned(u8, u16, u32, u64, u8, u16, u32, u64, u16, u64, u64, u64);
        macro_rules! offsets {
            ($of:ty) => {
                [
                    std::mem::offset_of!($of, 0),
                    std::mem::offset_of!($of, 1),
                    std::mem::offset_of!($of, 2),
                    std::mem::offset_of!($of, 3),
                    std::mem::offset_of!($of, 4),
                    std::mem::offset_of!($of, 5),
                    std::mem::offset_of!($of, 6),
                    std::mem::offset_of!($of, 7),
                    std::mem::offset_of!($of, 8),
                    std::mem::offset_of!($of, 9),
                    std::mem::offset_of!($of, 10),
                    std::mem::offset_of!($of, 11),
                ]
            };
        }
        assert_eq!((size_of::<Packed>(), offsets!(Packed)), (PACKED_SIZE, PACKED));
        assert_eq!((size_of::<Aligned>(), offsets!(Aligned)), (ALIGNED_SIZE, ALIGNED));
    }

    /// The job as it is described, field by field.
    fn one_by_one(bytes: &mut [u8; PACKED_SIZE]) -> u64 {
        let all = || PACKED.into_iter().zip(SIZES);
        let values: Vec<u64> = all().map(|(at, size)| get(bytes, at, size)).collect();
        let sum = values.iter().copied().fold(0, u64::wrapping_add);
        for (number, (at, size)) in all().enumerate() {
            put(bytes, at, size, values[number].wrapping_add(sum).wrapping_add(number as u64 + 1));
        }
        sum
    }

    #[test]
    fn the_job_that_is_written_out_is_that_of_the_sizes() {
        let mut bytes: [u8; PACKED_SIZE] = std::array::from_fn(|at| (at * 37) as u8);
        for _ in 0..100 {
            let mut other = bytes;
            assert_eq!(change(&mut bytes, &PACKED), one_by_one(&mut other));
            assert_eq!(bytes, other);
        }
    }

    #[test]
    fn the_job_changes_every_field_by_the_sum_and_its_number() {
        let mut bytes = [0; PACKED_SIZE];
        put(&mut bytes, PACKED[0], 1, 250);
        put(&mut bytes, PACKED[9], 8, u64::MAX);
        assert_eq!(change(&mut bytes, &PACKED), 249);
        let after: Vec<u64> =
            (0..COUNT).map(|field| get(&bytes, PACKED[field], SIZES[field])).collect();
        assert_eq!(after, [244, 251, 252, 253, 254, 255, 256, 257, 258, 258, 260, 261]);
    }
}
