//! Where a connection comes from, as a line of `pg_hba.conf` says it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::tokens::Token;

/// Addresses a line speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    All,
    /// This machine's own.
    SameHost,
    /// Those of the networks this machine is in.
    SameNet,
    Network {
        ip: IpAddr,
        mask: IpAddr,
    },
    /// A name, or what names end in.
    Host(String),
}

/// Reads an address; `mask` gives the next field, where one is needed.
pub(crate) fn address<'a>(token: &Token, mask: impl FnOnce() -> Result<&'a str, String>) -> Result<Address, String> {
    for (keyword, address) in [("all", Address::All), ("samehost", Address::SameHost), ("samenet", Address::SameNet)] {
        if token.is_keyword(keyword) {
            return Ok(address);
        }
    }
    let (text, bits) = match token.text.split_once('/') {
        Some((text, bits)) => (text, Some(bits)),
        None => (token.text.as_str(), None),
    };
    let Some(ip) = ip(text) else {
        return match bits {
            Some(_) => Err(format!("specifying both host name and CIDR mask is invalid: \"{}\"", token.text)),
            None => Ok(Address::Host(text.to_owned())),
        };
    };
    let mask = if let Some(bits) = bits {
        let invalid = || format!("invalid CIDR mask in address \"{}\"", token.text);
        let bits = bits.trim_start().trim_start_matches('+');
        let is_number = bits.bytes().all(|b| b.is_ascii_digit());
        let bits = bits.parse::<u32>().ok().filter(|_| is_number).ok_or_else(invalid)?;
        cidr_mask(ip, bits).ok_or_else(invalid)?
    } else {
        let text = mask()?;
        let invalid = || format!("invalid IP mask \"{text}\": Name or service not known");
        self::ip(text).ok_or_else(invalid)?
    };
    if ip.is_ipv4() != mask.is_ipv4() {
        return Err("IP address and mask do not match".to_owned());
    }
    Ok(Address::Network { ip, mask })
}

/// The mask of so many ones.
fn cidr_mask(ip: IpAddr, bits: u32) -> Option<IpAddr> {
    match ip {
        IpAddr::V4(_) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            Some(IpAddr::V4(Ipv4Addr::from_bits(mask)))
        }
        IpAddr::V6(_) if bits <= 128 => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            Some(IpAddr::V6(Ipv6Addr::from_bits(mask)))
        }
        _ => None,
    }
}

/// A number of an address of old, in C's notation.
fn c_number(text: &str) -> Option<u32> {
    let number = |digits: &str, radix| {
        // No sign, which the parser would take.
        digits.chars().all(|c| c.is_digit(radix)).then(|| u32::from_str_radix(digits, radix).ok()).flatten()
    };
    match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => number(text.get(2..)?, 16),
        [b'0', _, ..] => number(text.get(1..)?, 8),
        _ => number(text, 10),
    }
}

/// An address in numbers, in every notation that `getaddrinfo` reads: with fewer than four parts the last fills the rest.
fn ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        // The interface matters for sending, not for comparing.
        let (text, scope) = text.split_once('%').map_or((text, None), |(t, s)| (t, Some(s)));
        let is_interface = |s: &str| {
            let is_number = !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
            is_number || (!s.contains(['/', '.']) && std::path::Path::new("/sys/class/net").join(s).exists())
        };
        return text.parse().ok().filter(|_| scope.is_none_or(is_interface)).map(IpAddr::V6);
    }
    let parts = text.split('.').map(c_number).collect::<Option<Vec<u32>>>()?;
    let (last, first) = parts.split_last()?;
    if first.len() > 3 || first.iter().any(|part| *part > 255) {
        return None;
    }
    let left_bits = 32 - 8 * first.len() as u32;
    if left_bits < 32 && last >> left_bits != 0 {
        return None;
    }
    let above = first.iter().fold(0u32, |sum, part| (sum << 8) | part).checked_shl(left_bits).unwrap_or(0);
    Some(IpAddr::V4(Ipv4Addr::from_bits(above | last)))
}

impl Address {
    /// Whether an address is among them.
    pub(crate) fn has(&self, ip: IpAddr) -> Result<bool, String> {
        let ip = ip.to_canonical();
        match self {
            Address::All => Ok(true),
            Address::SameHost => Ok(interfaces().iter().any(|(own, _)| *own == ip)),
            Address::SameNet => Ok(interfaces().iter().any(|(own, mask)| is_within(ip, *own, *mask))),
            Address::Network { ip: net, mask } => Ok(is_within(ip, *net, *mask)),
            // Every machine's name for itself.
            Address::Host(name) if name.eq_ignore_ascii_case("localhost") => Ok(ip.is_loopback()),
            Address::Host(name) => Err(format!("host names (\"{name}\") are not supported in pg_hba.conf")),
        }
    }
}

fn is_within(ip: IpAddr, net: IpAddr, mask: IpAddr) -> bool {
    match (ip, net, mask) {
        (IpAddr::V4(ip), IpAddr::V4(net), IpAddr::V4(mask)) => (ip.to_bits() ^ net.to_bits()) & mask.to_bits() == 0,
        (IpAddr::V6(ip), IpAddr::V6(net), IpAddr::V6(mask)) => (ip.to_bits() ^ net.to_bits()) & mask.to_bits() == 0,
        _ => false,
    }
}

/// The addresses of this machine with their networks' masks, as Linux shows them. One whose network is not shown stands for
/// itself alone.
fn interfaces() -> Vec<(IpAddr, IpAddr)> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    let mut all = ipv4_interfaces(&read("fib_trie"), &read("route"));
    all.extend(ipv6_interfaces(&read("if_inet6")));
    all
}

/// `fib_trie` shows an address in one line and what it is in the next; `route` the networks, in hexadecimal of this
/// machine's byte order.
fn ipv4_interfaces(trie: &str, routes: &str) -> Vec<(IpAddr, IpAddr)> {
    let mut own: Vec<Ipv4Addr> = Vec::new();
    let mut last = None;
    for line in trie.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse().ok();
        } else if line == "/32 host LOCAL"
            && let Some(address) = last
            && !own.contains(&address)
        {
            own.push(address);
        }
    }
    let mut networks = vec![(Ipv4Addr::new(127, 0, 0, 0), Ipv4Addr::new(255, 0, 0, 0))];
    for line in routes.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |i: usize| fields.get(i).and_then(|f| u32::from_str_radix(f, 16).ok());
        if let (Some(network), Some(0), Some(mask @ 1..)) = (number(1), number(2), number(7)) {
            let address = |n: u32| Ipv4Addr::from(n.to_ne_bytes());
            networks.push((address(network), address(mask)));
        }
    }
    let mask_of = |address: &Ipv4Addr| {
        let within = |(net, mask): &&(Ipv4Addr, Ipv4Addr)| (net.to_bits() ^ address.to_bits()) & mask.to_bits() == 0;
        networks.iter().find(within).map_or(Ipv4Addr::BROADCAST, |(_, mask)| *mask)
    };
    own.iter().map(|address| (IpAddr::V4(*address), IpAddr::V4(mask_of(address)))).collect()
}

/// `if_inet6`: address, interface, length of the prefix, scope, flags, name, in hexadecimal.
fn ipv6_interfaces(text: &str) -> Vec<(IpAddr, IpAddr)> {
    let mut all = Vec::new();
    for line in text.lines() {
        let mut fields = line.split_whitespace();
        let address = fields.next().and_then(|f| u128::from_str_radix(f, 16).ok());
        let bits = fields.nth(1).and_then(|f| u32::from_str_radix(f, 16).ok());
        if let (Some(address), Some(bits)) = (address, bits) {
            let ip = IpAddr::V6(Ipv6Addr::from_bits(address));
            all.extend(cidr_mask(ip, bits).map(|mask| (ip, mask)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_and_their_networks() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     +-- 127.0.0.0/8 2 0 2\n        |-- 127.0.0.1\n           /32 host LOCAL\n        |-- 172.17.0.0\n           /16 link UNICAST\n        |-- 172.17.0.2\n           /32 host LOCAL\n";
        let routes = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\neth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\neth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\n";
        let show = |list: Vec<(IpAddr, IpAddr)>| list.iter().map(|(a, m)| format!("{a} {m}")).collect::<Vec<_>>();
        assert_eq!(show(ipv4_interfaces(trie, routes)), ["127.0.0.1 255.0.0.0", "172.17.0.2 255.255.0.0"]);
        let six = "00000000000000000000000000000001 01 80 10 80       lo\nfe800000000000000000000000000001 02 40 20 80 eth0\n";
        let expected = ["::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fe80::1 ffff:ffff:ffff:ffff::"];
        assert_eq!(show(ipv6_interfaces(six)), expected);
        assert!(ipv4_interfaces("nonsense", "\n1").is_empty() && ipv6_interfaces("x y z").is_empty());
    }
}
