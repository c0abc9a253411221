package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"unicode/utf8"
)

// entropyOf is the Shannon entropy of the bytes, in bits of each.
func entropyOf(b []byte) float64 {
	var count [256]int
	for _, c := range b {
		count[c]++
	}
	sum := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(b))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}

func digit(c byte) bool  { return '0' <= c && c <= '9' }
func letter(c byte) bool { return 'a' <= lower(c) && lower(c) <= 'z' }
func azure(c byte) bool  { return word(c) || c == '~' || c == '.' }

// mixed reports whether b has letters and digits.
func mixed(b []byte) bool {
	return slices.ContainsFunc(b, digit) && slices.ContainsFunc(b, letter)
}

// random reports whether b is nothing that a person writes: it has a run of ten letters and
// digits or more, both mixed.
func random(b []byte) bool {
	if entropyOf(b) < 3 {
		return false
	}
	from := 0
	for i := 0; i <= len(b); i++ {
		if i < len(b) && (letter(b[i]) || digit(b[i])) {
			continue
		}
		if run := b[from:i]; len(run) >= 10 && shuffled(run) {
			return true
		}
		from = i + 1
	}
	return false
}

// shuffled reports whether letters and digits change places more often than in a word with a
// number, or the case does.
func shuffled(run []byte) bool {
	if !mixed(run) {
		return false
	}
	changes := 0
	for i := 1; i < len(run); i++ {
		if digit(run[i]) != digit(run[i-1]) {
			changes++
		}
	}
	return changes >= 2 || entropyOf(run) >= 3.5
}

// jwtShape reports whether the first part of a token is a JSON object.
func jwtShape(b []byte) bool {
	head, _, _ := bytes.Cut(b, []byte("."))
	text, err := base64.RawURLEncoding.AppendDecode(nil, head)
	return err == nil && json.Valid(text)
}

// basicShape reports whether b is a name and a password in base64.
func basicShape(b []byte) bool {
	text, err := base64.RawStdEncoding.AppendDecode(nil, bytes.TrimRight(b, "="))
	if err != nil || !utf8.Valid(text) || bytes.IndexByte(text, ':') < 1 {
		return false
	}
	return !slices.ContainsFunc(text, func(c byte) bool { return c < ' ' })
}

// placeholders are words that people write where a secret belongs.
var placeholders = [][]byte{
	[]byte("null"), []byte("none"), []byte("nil"), []byte("true"), []byte("false"), []byte("undefined"), []byte("string"), []byte("required"), []byte("optional"), []byte("password"), []byte("passwd"),
	[]byte("secret"), []byte("token"), []byte("hidden"), []byte("redacted"), []byte("masked"), []byte("empty"), []byte("default"), []byte("pass"), []byte("value"),
}

// notPlaceholder reports whether b is a value of its own, not the name of one.
func notPlaceholder(b []byte) bool {
	if len(b) == 0 || bytes.IndexByte([]byte("$<{[(%*"), b[0]) >= 0 || bytes.Contains(b, []byte("redacted:")) || bytes.Contains(b, []byte("...")) || bytes.Contains(b, []byte("${")) {
		return false
	}
	for _, p := range placeholders {
		if len(b) == len(p) && bytes.EqualFold(b, p) {
			return false
		}
	}
	low := bytes.ToLower(b)
	for _, p := range []string{"your", "example", "changeme", "xxx", "placeholder"} {
		if bytes.HasPrefix(low, []byte(p)) && !mixed(b) {
			return false
		}
	}
	return bytes.Count(b, b[:1]) < len(b)
}

// quotedValue reports whether the text between quotes behind a key is a secret.
func quotedValue(b []byte) bool {
	low := bytes.ToLower(b)
	for _, p := range []string{"password", "passwd", "secret"} { // the name of one
		if bytes.HasPrefix(low, []byte(p)) && !mixed(b) {
			return false
		}
	}
	if len(b) > 1 && (b[0] == '^' || b[0] == '~') && digit(b[1]) { // a version
		return false
	}
	return notPlaceholder(b) && !bytes.ContainsAny(b, "{}()%<>")
}

// bareValue reports whether the text behind a key is a secret and no expression: a person's
// password has a digit or a sign in it.
func bareValue(b []byte) bool {
	if !notPlaceholder(b) || b[0] == '/' || b[0] == '.' || b[0] == '"' || b[0] == '&' || b[0] == '-' || b[0] == '=' || b[0] == ':' {
		return false
	}
	strange := false
	for _, c := range b {
		switch {
		case c >= 0x80:
			return false
		case digit(c), bytes.IndexByte([]byte("!@#^*+~?"), c) >= 0, c == '-':
			strange = true
		}
	}
	return strange
}

// optionValue reports whether the value of an option of a command is a secret.
func optionValue(b []byte) bool {
	return notPlaceholder(b) && (mixed(b) || bytes.ContainsAny(b, "!@#^*+~?-"))
}

// noDot: without a dot behind its first part nothing in a run of token bytes is a JSON web token.
func noDot(b []byte) int {
	for i, c := range b {
		if word(c) || c == '-' {
			continue
		}
		if c == '.' {
			return 0
		}
		return i + 1
	}
	return len(b)
}

// noAt: without an @ nothing in a run of URL bytes has a password. The expression looks urlReach far, so an @ behind that
// is of a URL that begins later.
func noAt(b []byte) int {
	near := b[:min(len(b), 2*urlReach)]
	for i, c := range near {
		if c == '@' {
			return max(i+1-urlReach, 0)
		}
		if c <= ' ' || c == '"' || c == '\'' || c == '<' || c == '>' {
			return i + 1
		}
	}
	return urlReach
}

// notKey: behind a key is a separator.
func notKey(b []byte) int {
	i := 0
	for i < len(b) && (letter(b[i]) || b[i] == '_' || b[i] == '-') {
		i++
	}
	if i > 20 {
		return 1
	}
	for end := min(i+12, len(b)); i < end; i++ {
		switch b[i] {
		case ':', '=', ',':
			return 0
		case '"', '\'', '\\', ' ', '\t':
		default:
			return 1
		}
	}
	return 1
}

// luhn reports whether the last of the digits is the check digit of the others.
func luhn(digits []byte) bool {
	sum := 0
	for i := range digits {
		n := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if n *= 2; n >= 10 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}

// ibanSum reports whether an account number without blanks has the check digits of ISO 13616.
func ibanSum(b []byte) bool {
	rest := 0
	for i := range b {
		switch c := b[(i+4)%len(b)]; {
		case digit(c):
			rest = (rest*10 + int(c-'0')) % 97
		case letter(c):
			rest = (rest*100 + int(lower(c)) - ('a' - 10)) % 97
		default:
			return false
		}
	}
	return rest == 1
}
