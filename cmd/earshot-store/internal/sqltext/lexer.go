package sqltext

import (
	"strings"
	"unicode/utf8"
)

type kind uint8

const (
	word    kind = iota // bare identifier or keyword
	quoted              // `identifier` or "identifier"
	literal             // 'string' or heredoc
	number
	symbol  // one character of punctuation
	invalid // unterminated string, identifier or comment: lexing stops
)

// token is a piece of text that means something. Comments and spaces are not tokens.
type token struct {
	kind     kind
	pos, end int
	text     string // as written
}

// is reports whether the token is the keyword kw (upper case).
func (t token) is(kw string) bool { return t.kind == word && strings.EqualFold(t.text, kw) }

// sym reports whether the token is the punctuation character c.
func (t token) sym(c byte) bool { return t.kind == symbol && t.text[0] == c }

// name reports whether the token can name something.
func (t token) name() bool { return t.kind == word || t.kind == quoted }

// value is the token without its quotes and escapes.
func (t token) value() string {
	if t.kind != quoted && t.kind != literal {
		return t.text
	}
	if t.text[0] == '$' {
		tag := strings.IndexByte(t.text[1:], '$') + 2
		return t.text[tag : len(t.text)-tag]
	}
	if _, open := openQuote(t.text); open > 1 { // typographic quotes know no escapes
		return t.text[open : len(t.text)-open]
	}
	q := t.text[0]
	s := t.text[1 : len(t.text)-1]
	if strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, q) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' && i+1 < len(s) {
			i++
			c = unescape(s[i])
		} else if c == q {
			i++ // a doubled quote
		}
		b.WriteByte(c)
	}
	return b.String()
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'a':
		return '\a'
	case 'v':
		return '\v'
	case '0':
		return 0
	}
	return c
}

// lexer cuts SQL into tokens as ClickHouse does: comments are --, /* */ (not
// nested), # and #! to the end of the line; strings are '...', heredocs
// ($tag$...$tag$) and ‘...’; identifiers may stand in `...`, "..." and “...”.
type lexer struct {
	s        string
	pos      int
	unclosed int // heredoc tags without an end so far
}

// maxUnclosed bounds how often the rest of the text is searched in vain for the
// end of a heredoc; a dollar sign behind that is a dollar sign.
const maxUnclosed = 100

// next returns the next token, or false at the end of the text.
func (l *lexer) next() (token, bool) {
	if !l.skip() {
		return l.cut(invalid, len(l.s)), true
	}
	if l.pos >= len(l.s) {
		return token{}, false
	}
	rest := l.s[l.pos:]
	c := rest[0]
	switch {
	case isWordStart(c):
		return l.cut(word, l.pos+span(rest, isWordPart)), true
	case c >= '0' && c <= '9':
		return l.cut(number, l.pos+span(rest, isNumberPart)), true
	case c == '$':
		if l.unclosed < maxUnclosed {
			if end := heredocEnd(rest); end > 0 {
				return l.cut(literal, l.pos+end), true
			}
			l.unclosed++
		}
		return l.cut(symbol, l.pos+1), true
	}
	if k, open := openQuote(rest); open > 0 {
		end := closeQuote(rest, open)
		if end < 0 {
			return l.cut(invalid, len(l.s)), true
		}
		return l.cut(k, l.pos+end), true
	}
	return l.cut(symbol, l.pos+1), true
}

func (l *lexer) cut(k kind, end int) token {
	t := token{kind: k, pos: l.pos, end: end, text: l.s[l.pos:end]}
	l.pos = end
	return t
}

// skip passes over spaces and comments. It is false inside an unterminated one.
func (l *lexer) skip() bool {
	for l.pos < len(l.s) {
		rest := l.s[l.pos:]
		switch {
		case strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "# "), strings.HasPrefix(rest, "#!"):
			eol := strings.IndexByte(rest, '\n')
			if eol < 0 {
				eol = len(rest) - 1
			}
			l.pos += eol + 1
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return false
			}
			l.pos += end + 4
		default:
			n := spaceLen(rest)
			if n == 0 {
				return true
			}
			l.pos += n
		}
	}
	return true
}

func spaceLen(s string) int {
	switch c := s[0]; {
	case c == ' ' || c >= '\t' && c <= '\r':
		return 1
	case c < utf8.RuneSelf:
		return 0
	}
	switch r, n := utf8.DecodeRuneInString(s); {
	case r == '\u00a0', r == '\u1680', r >= '\u2000' && r <= '\u200d', r == '\u2028', r == '\u2029',
		r == '\u202f', r == '\u205f', r == '\u2060', r == '\u3000', r == '\ufeff':
		return n
	}
	return 0
}

// openQuote returns the kind of token that a quote at the start of s opens, and its length.
func openQuote(s string) (kind, int) {
	switch s[0] {
	case '\'':
		return literal, 1
	case '`', '"':
		return quoted, 1
	}
	switch {
	case strings.HasPrefix(s, "‘"):
		return literal, len("‘")
	case strings.HasPrefix(s, "“"):
		return quoted, len("“")
	}
	return symbol, 0
}

// closeQuote returns the offset behind the closing quote of s, or -1.
func closeQuote(s string, open int) int {
	if open > 1 {
		closing := map[string]string{"‘": "’", "“": "”"}[s[:open]]
		at := strings.Index(s[open:], closing)
		if at < 0 {
			return -1
		}
		return open + at + len(closing)
	}
	q := s[0]
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case q:
			if i+1 >= len(s) || s[i+1] != q {
				return i + 1
			}
			i++
		}
	}
	return -1
}

// heredocEnd returns the length of a heredoc at the start of s, or 0.
func heredocEnd(s string) int {
	n := 1 + span(s[1:], func(c byte) bool { return isWordPart(c) && c != '$' })
	if n >= len(s) || s[n] != '$' {
		return 0
	}
	tag := s[:n+1]
	end := strings.Index(s[n+1:], tag)
	if end < 0 {
		return 0
	}
	return n + 1 + end + len(tag)
}

func span(s string, in func(byte) bool) int {
	for i := range len(s) {
		if !in(s[i]) {
			return i
		}
	}
	return len(s)
}

func isWordStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isWordPart(c byte) bool { return isWordStart(c) || c >= '0' && c <= '9' || c == '$' }

func isNumberPart(c byte) bool { return isWordPart(c) && c != '$' || c == '.' }
