package redact

import (
	"bytes"
	"net/netip"
	"regexp"
	"strings"
)

// personalKind is a kind of personal data: an expression, of which the first group, if any, is the
// value, a byte that every match has, and a test of the value.
type personalKind struct {
	name  string
	has   string // a match has one of these bytes
	re    *regexp.Regexp
	check func([]byte) bool
}

// find returns where its matches begin and end.
func (k *personalKind) find(b []byte) [][]int {
	if k.has != "" && !bytes.ContainsAny(b, k.has) {
		return nil
	}
	return k.re.FindAllIndex(b, -1)
}

// PersonalKinds are the names of the kinds of personal data.
func PersonalKinds() []string {
	var names []string
	for _, k := range personalKinds() {
		if len(names) == 0 || names[len(names)-1] != k.name {
			names = append(names, k.name)
		}
	}
	return names
}

// personalKinds are in the order in which they name a match of several.
func personalKinds() []personalKind {
	const digits = "0123456789"
	kind := func(name, has, expr string, check func([]byte) bool) personalKind {
		return personalKind{name, has, regexp.MustCompile(expr), check}
	}
	id := func(expr string, check func([]byte) bool) personalKind {
		return kind("national_id", digits, expr, check)
	}
	return []personalKind{
		kind("email", "@", `\b[A-Za-z0-9._%+'-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.)+[A-Za-z]{2,24}\b`, nil),
		kind("iban", digits, `\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b`, func(b []byte) bool { return ibanSum(without(b, " ")) }),
		kind("card", digits, `\b(?:[0-9]{4}[ -]?){3}[0-9]{1,7}\b|\b3[47][0-9]{2}[ -]?[0-9]{6}[ -]?[0-9]{5}\b`, card),
		id(`\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b`, ssn),                                                                                    // United States
		id(`\b[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?(?:[0-9]{2} ?){3}[A-D]\b`, nil),                                                   // United Kingdom
		id(`\b[12] ?[0-9]{2} ?[0-9]{2} ?[0-9][0-9AB] ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}\b`, frenchID),                                     // France
		id(`\b[1-9][0-9]{10}\b`, germanID),                                                                                           // Germany
		id(`\b[A-Z]{6}[0-9]{2}[A-EHLMPR-T][0-9]{2}[A-Z][0-9]{3}[A-Z]\b`, nil),                                                        // Italy
		id(`\b[0-9XYZ][0-9]{7}-?[A-Z]\b`, spanishID),                                                                                 // Spain
		id(`\b[0-9]{9}\b`, func(b []byte) bool { return weighted(b, []int{9, 8, 7, 6, 5, 4, 3, 2, -1}, 11) }),                        // Netherlands
		id(`\b[0-9]{11}\b`, func(b []byte) bool { return dated(b[2:6]) && weighted(b, []int{1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1}, 10) }), // Poland
		id(`\b(?:[0-9]{2})?[0-9]{6}[-+][0-9]{4}\b`, swedishID),                                                                       // Sweden
		id(`\b[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}\b`, brazilianID),                                                                 // Brazil
		kind("ip", ".", `\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b`, address),
		kind("ip", ":", `(?:[0-9A-Fa-f]{1,4}:|:){2,7}(?:[0-9A-Fa-f]{1,4}|:)`, address),
		kind("phone", "+0(", `(?:\+[1-9][0-9]{0,2}[ .-]?|\b00[1-9][0-9]{0,2}[ .-]|\b0)?(?:\([0-9]{2,5}\)[ .-]?)?[0-9]{2,5}(?:[ .-][0-9]{1,8}){1,5}\b|\+[1-9][0-9]{7,14}\b`, phone),
	}
}

func without(b []byte, signs string) []byte {
	return bytes.Map(func(r rune) rune {
		if strings.ContainsRune(signs, r) {
			return -1
		}
		return r
	}, b)
}

func card(b []byte) bool {
	d := without(b, " -")
	if len(d) < 13 || len(d) > 19 || d[0] < '2' || d[0] > '6' {
		return false
	}
	return luhn(d) && bytes.Count(d, d[:1]) < len(d)
}

func ssn(b []byte) bool {
	area := string(b[:3])
	return area != "000" && area != "666" && area < "900" && string(b[4:6]) != "00" && string(b[7:]) != "0000"
}

func number(b []byte) (n int) {
	for _, c := range b {
		n = n*10 + int(c-'0')
	}
	return n
}

func frenchID(b []byte) bool {
	d := without(b, " ")
	minus := 0
	switch d[6] { // Corsica
	case 'A':
		d[6], minus = '0', 1000000
	case 'B':
		d[6], minus = '0', 2000000
	}
	month := number(d[3:5])
	return month >= 1 && (month <= 12 || month >= 20 && month <= 42) && 97-(number(d[:13])-minus)%97 == number(d[13:])
}

// germanID is the check digit of ISO 7064, MOD 11,10.
func germanID(b []byte) bool {
	product := 10
	for _, c := range b[:10] {
		sum := (int(c-'0') + product) % 10
		if sum == 0 {
			sum = 10
		}
		product = 2 * sum % 11
	}
	return (11-product)%10 == int(b[10]-'0')
}

func spanishID(b []byte) bool {
	d := without(b, "-")
	first := d[0]
	if first >= 'X' {
		first = first - 'X' + '0'
	}
	n := number(append([]byte{first}, d[1:8]...))
	return "TRWAGMYFPDXBNJZSQVHLCKE"[n%23] == d[8]
}

func weighted(b []byte, weights []int, modulus int) bool {
	sum := 0
	for i, c := range b {
		sum += int(c-'0') * weights[i]
	}
	return sum%modulus == 0 && sum != 0
}

// dated reports whether b is a month, with the century in it, and a day.
func dated(b []byte) bool {
	month, day := number(b[:2])%20, number(b[2:])
	return month >= 1 && month <= 12 && day >= 1 && day <= 31
}

func swedishID(b []byte) bool {
	d := without(b, "-+")
	d = d[len(d)-10:]
	return dated(d[2:6]) && luhn(d)
}

func brazilianID(b []byte) bool {
	d := without(b, ".-")
	digit := func(n int) int {
		sum := 0
		for i := range n {
			sum += int(d[i]-'0') * (n + 1 - i)
		}
		return sum * 10 % 11 % 10
	}
	return bytes.Count(d, d[:1]) < len(d) && digit(9) == int(d[9]-'0') && digit(10) == int(d[10]-'0')
}

// address reports whether b is the address of another machine.
func address(b []byte) bool {
	a, err := netip.ParseAddr(string(b))
	return err == nil && !a.IsLoopback() && !a.IsUnspecified()
}

func phone(b []byte) bool {
	d := without(b, "+ .-()")
	return (b[0] == '+' || b[0] == '0' || b[0] == '(') && len(d) >= 8 && len(d) <= 15 && !bytes.HasPrefix(d, []byte("000")) && !bytes.Contains(b, []byte("..")) && bytes.Count(b, []byte(".")) != 3
}
