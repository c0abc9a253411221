package mcp

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/inspect"
)

// The bounds of an answer, in tokens.
const (
	DefaultTokens = 1500
	MostTokens    = 4000
	leastTokens   = 300
	bytesPerToken = 3
	lineBytes     = 1200 // of a line; the rest of it is left out
	frameBytes    = 480  // of the delimiters, and of the sentences around the block
)

// Tokens estimates the tokens of a text, a third of its bytes.
func Tokens(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

// Page is the part of an answer that a caller wants. Tools embed it in their arguments.
type Page struct {
	Skip      int `json:"skip,omitempty" jsonschema:"leave out this many lines of the answer: to go on where an earlier one was cut"`
	MaxTokens int `json:"max_tokens,omitempty" jsonschema:"bound of the answer, 1500 unless told, at most 4000"`
}

// answer is a writer of untrusted lines, of which it holds those of a page.
type answer struct {
	skip, room int
	body       bytes.Buffer
	open       []byte // a line that has not ended
	long       int    // bytes of it that are left out
	lines      int    // that have ended
	shown      int
}

func newAnswer(p Page) *answer {
	if p.MaxTokens <= 0 {
		p.MaxTokens = DefaultTokens
	}
	return &answer{skip: max(p.Skip, 0), room: min(max(p.MaxTokens, leastTokens), MostTokens)*bytesPerToken - frameBytes}
}

var _ io.Writer = (*answer)(nil)

// Write implements io.Writer. It holds no more than a page and a line.
func (a *answer) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		fits := min(len(line), max(0, lineBytes-len(a.open)))
		a.open, a.long = append(a.open, line[:fits]...), a.long+len(line)-fits
		if b = rest; ended {
			a.end()
		}
	}
	return n, nil
}

// line writes a line. Line breaks in its values are blanks.
func (a *answer) line(format string, values ...any) {
	for i, v := range values {
		if s, ok := v.(string); ok {
			values[i] = strings.ReplaceAll(s, "\n", " ")
		}
	}
	fmt.Fprintf(a, format+"\n", values...)
}

func (a *answer) end() {
	a.lines++
	open, long := a.open, a.long
	a.open, a.long = a.open[:0], 0
	if a.lines <= a.skip || a.lines != a.skip+a.shown+1 { // before the page, or behind a line without room
		return
	}
	text := strings.TrimRight(neutral(string(open)), " ")
	if most := min(lineBytes, a.room-80); len(text) > most || long > 0 { // with room for the next words
		all := len(text) + long
		for most = min(most, len(text)); most > 0 && most < len(text) && !utf8.RuneStart(text[most]); {
			most--
		}
		text = fmt.Sprintf("%s… (%d bytes of this line are left out)", text[:most], all-most)
	}
	if a.body.Len()+len(text)+1 > a.room {
		return
	}
	a.body.WriteString(text + "\n")
	a.shown++
}

// text is the whole answer. more is how to get at other than further lines, a sentence.
func (a *answer) text(more string) string {
	if len(a.open) > 0 || a.long > 0 {
		a.end()
	}
	nonce := newNonce()
	var b strings.Builder
	fmt.Fprintf(&b, "<<<untrusted-%s\n%s%s>>>\n", nonce, a.body.String(), nonce)
	if last := min(a.skip, a.lines) + a.shown; last < a.lines {
		fmt.Fprintf(&b, "Cut: lines %d to %d of %d. The same call with skip %d has what follows", min(a.skip+1, last), last, a.lines, last)
		if a.room+frameBytes < MostTokens*bytesPerToken {
			fmt.Fprintf(&b, ", with max_tokens %d more at once", MostTokens)
		}
		b.WriteString(".\n")
	}
	if more != "" {
		b.WriteString(more + "\n")
	}
	return b.String()
}

// newNonce is a number that no text of before can have.
func newNonce() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// neutral is a line without terminal sequences and without characters that a reader does not see: controls,
// marks of direction, blanks of no width, tags.
func neutral(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == utf8.RuneError, unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp), 0xfe00 <= r && r <= 0xfe0f, 0xe0100 <= r && r <= 0xe01ef:
			return '·'
		}
		return r
	}, inspect.Plain(s))
}
