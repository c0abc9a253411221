package redact

import "bytes"

// keyEnd is where a key ends that secretKey has a rule for. It is no secret: the rule is applied when the document is
// looked at closely, and for that the value of the key, alone, is reason enough. The prefixes are those of other kinds,
// so that the prefilter has no more to find.
func keyEnd() kind {
	return kind{
		name: "key", reach: 32, ahead: notKeyEnd, closer: mayBeSecret,
		expr: `(?:` + strong + `|` + weak + `|(?i:cookie|authorization|(?:secret|access|private|auth)-key))[\s"'\\:=]`,
	}
}

// longestEnd is more than the end of a key has.
const longestEnd = 20

// notKeyEnd: a key ends with a quote, which may be escaped.
func notKeyEnd(b []byte) int {
	for _, c := range b[:min(len(b), longestEnd)] {
		if c == '"' || c == '\\' {
			return 0
		}
		if !letter(c) && c != '_' && c != '-' {
			return 1
		}
	}
	return 1
}

// longestKey is how long a key may be whose value is a secret.
const longestKey = 64

// mayBeSecret reports whether the value of the key that ends at an index is a secret by its rule. It errs on the side of yes.
func mayBeSecret(b []byte, at int) bool {
	near := b[max(0, at-longestKey-1):at]
	key := near[bytes.LastIndexByte(near, '"')+1:]
	if bytes.IndexByte(key, '\\') >= 0 {
		return true
	}
	name, check := secretKey(key)
	if name == "" {
		return false
	}
	c := cursor(b[at:])
	if _, ok := c.quote(); !ok {
		return false
	}
	if c.sign(',') { // {"name":"db_password","value":"x"}, or "value":{"stringValue":"x"}
		if !c.valueKey() {
			return false
		}
		if c.sign('{') && !c.valueKey() {
			return false
		}
	} else if !c.sign(':') {
		return false
	}
	escapes, ok := c.quote()
	if !ok {
		return false
	}
	text := c.text()
	rest := bytes.TrimLeft(c, `\`)
	if len(rest) > 0 && rest[0] == '"' && len(c)-len(rest) == escapes {
		return check(text)
	}
	return true // an escape, or the end of a document that was cut off
}

// cursor is the rest of a document that may be in a string of another, with its quotes and blanks escaped.
type cursor []byte

func (c *cursor) blank() {
	for len(*c) > 0 {
		n := 0
		for n < len(*c) && (*c)[n] == '\\' {
			n++
		}
		switch {
		case n == 0 && (*c)[0] <= ' ':
			*c = (*c)[1:]
		case n > 0 && n < len(*c) && bytes.IndexByte([]byte("nrt"), (*c)[n]) >= 0:
			*c = (*c)[n+1:]
		default:
			return
		}
	}
}

// sign skips a sign.
func (c *cursor) sign(s byte) bool {
	c.blank()
	if len(*c) == 0 || (*c)[0] != s {
		return false
	}
	*c = (*c)[1:]
	return true
}

// quote skips a quote, and returns how many backslashes were before it.
func (c *cursor) quote() (escapes int, ok bool) {
	c.blank()
	for escapes < len(*c) && (*c)[escapes] == '\\' {
		escapes++
	}
	if escapes == len(*c) || (*c)[escapes] != '"' {
		return 0, false
	}
	*c = (*c)[escapes+1:]
	return escapes, true
}

// text skips the bytes before a quote or an escape.
func (c *cursor) text() []byte {
	n := bytes.IndexAny(*c, `"\`)
	if n < 0 {
		n = len(*c)
	}
	text := (*c)[:n]
	*c = (*c)[n:]
	return text
}

// valueKey skips the key of a value, with its colon.
func (c *cursor) valueKey() bool {
	if _, ok := c.quote(); !ok || !valueKey(c.text()) {
		return false
	}
	_, ok := c.quote()
	return ok && c.sign(':')
}
