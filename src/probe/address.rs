//! Which addresses may be asked: an endpoint's owner, or whoever answers for its name, must not lead us to what only this
//! machine can reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// What the operator allows beyond the public internet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddressRules {
    /// Private networks: 10/8, 172.16/12, 192.168/16, `fc00::/7`.
    pub private: bool,
    /// This machine: 127/8, `::1`.
    pub loopback: bool,
}

/// How a range is treated.
#[derive(Clone, Copy)]
enum Range {
    /// Never asked; the word says what it is.
    Never(&'static str),
    /// Asked when the operator allows private networks.
    Private,
    /// Asked when the operator allows this machine.
    Loopback,
}

/// IPv4 ranges that are no public hosts (IANA special-purpose registry), and metadata services outside of them. The first
/// that fits counts.
const V4: &[([u8; 4], u32, Range)] = &[
    ([0, 0, 0, 0], 8, Range::Never("an unspecified address")),
    ([10, 0, 0, 0], 8, Range::Private),
    (
        [100, 64, 0, 0],
        10,
        Range::Never("an address of carrier NAT"),
    ),
    ([127, 0, 0, 0], 8, Range::Loopback),
    // A platform's own channel to its machines.
    (
        [168, 63, 129, 16],
        32,
        Range::Never("the address of a metadata service"),
    ),
    (
        [169, 254, 0, 0],
        16,
        Range::Never("a link-local address, where metadata services are"),
    ),
    ([172, 16, 0, 0], 12, Range::Private),
    (
        [192, 0, 0, 0],
        24,
        Range::Never("an address for protocols, not hosts"),
    ),
    ([192, 0, 2, 0], 24, Range::Never("a documentation address")),
    ([192, 88, 99, 0], 24, Range::Never("a relay's address")),
    ([192, 168, 0, 0], 16, Range::Private),
    ([198, 18, 0, 0], 15, Range::Never("a benchmarking address")),
    (
        [198, 51, 100, 0],
        24,
        Range::Never("a documentation address"),
    ),
    (
        [203, 0, 113, 0],
        24,
        Range::Never("a documentation address"),
    ),
    ([224, 0, 0, 0], 4, Range::Never("a multicast address")),
    (
        [240, 0, 0, 0],
        4,
        Range::Never("a reserved or broadcast address"),
    ),
];

/// IPv6 ranges. What none of them names is asked only inside `2000::/3`, where public hosts are.
const V6: &[([u16; 8], u32, Range)] = &[
    (
        [0, 0, 0, 0, 0, 0, 0, 0],
        128,
        Range::Never("an unspecified address"),
    ),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, Range::Loopback),
    // Metadata services inside private ranges: before the range that holds them.
    (
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254],
        128,
        Range::Never("the address of a metadata service"),
    ),
    (
        [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254],
        128,
        Range::Never("the address of a metadata service"),
    ),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, Range::Private),
    (
        [0xfe80, 0, 0, 0, 0, 0, 0, 0],
        10,
        Range::Never("a link-local address"),
    ),
    (
        [0xff00, 0, 0, 0, 0, 0, 0, 0],
        8,
        Range::Never("a multicast address"),
    ),
    // They carry an IPv4 address that somebody else may reach for us.
    (
        [0x64, 0xff9b, 0, 0, 0, 0, 0, 0],
        16,
        Range::Never("a NAT64 address"),
    ),
    (
        [0x2002, 0, 0, 0, 0, 0, 0, 0],
        16,
        Range::Never("a 6to4 address"),
    ),
    (
        [0x2001, 0, 0, 0, 0, 0, 0, 0],
        23,
        Range::Never("an address for protocols, not hosts"),
    ),
    (
        [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0],
        32,
        Range::Never("a documentation address"),
    ),
    (
        [0x3fff, 0, 0, 0, 0, 0, 0, 0],
        20,
        Range::Never("a documentation address"),
    ),
];

impl AddressRules {
    /// Why an address is not asked, in a few words; none when it may be.
    pub fn refusal(self, address: IpAddr) -> Option<&'static str> {
        let range = match address {
            IpAddr::V4(address) => v4(address),
            // Break it: judge the mapped form as it is; ::ffff:169.254.169.254 is then refused only by luck, and
            // ::ffff:127.0.0.1 as something else than loopback.
            IpAddr::V6(address) => match address.to_ipv4_mapped() {
                Some(mapped) => v4(mapped),
                None => v6(address),
            },
        };
        match range? {
            Range::Private if self.private => None,
            Range::Loopback if self.loopback => None,
            Range::Private => Some("a private address, which health_addresses.private refuses"),
            Range::Loopback => {
                Some("an address of this machine, which health_addresses.loopback refuses")
            }
            Range::Never(what) => Some(what),
        }
    }

    /// The same for an address that stands in a URL itself; a name is looked at when it is resolved.
    pub fn refusal_of(self, url: &Url) -> Option<&'static str> {
        match url.host() {
            Some(Host::Ipv4(address)) => self.refusal(address.into()),
            Some(Host::Ipv6(address)) => self.refusal(address.into()),
            Some(Host::Domain(_)) | None => None,
        }
    }
}

fn v4(address: Ipv4Addr) -> Option<Range> {
    let bits = address.to_bits();
    V4.iter()
        .find(|(network, length, _)| {
            (bits ^ Ipv4Addr::from(*network).to_bits()) >> (32 - length) == 0
        })
        .map(|(_, _, range)| *range)
}

fn v6(address: Ipv6Addr) -> Option<Range> {
    let bits = address.to_bits();
    let found = V6.iter().find(|(network, length, _)| {
        (bits ^ Ipv6Addr::from(*network).to_bits()) >> (128 - length) == 0
    });
    match found {
        Some((_, _, range)) => Some(*range),
        None if bits >> 125 == 0b001 => None,
        None => Some(Range::Never("no address of a public host")),
    }
}
