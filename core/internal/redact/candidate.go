package redact

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// mayHold reports whether b may hold a secret. It errs on the side of yes. Every byte of
// every frame goes through it.
func (r *Redactor) mayHold(b []byte) bool {
	if r.builtin && r.prefilter.candidate(b) || escapedLetter(b) {
		return true
	}
	if len(r.keys) > 0 && r.keys.in(b) {
		return true
	}
	for i := range r.patterns {
		if p := &r.patterns[i]; p.literal == nil || bytes.Contains(b, p.literal) || escaped(p.literal, b) {
			return true
		}
	}
	return false
}

// escapedLetter reports whether b has a printable character as a \u escape that no encoder
// needs to write: all of ASCII but the quote, the backslash and those that HTML has its own use for.
func escapedLetter(b []byte) bool {
	for {
		i := bytes.Index(b, []byte(`\u00`))
		if i < 0 || i+6 > len(b) {
			return false
		}
		high, low := b[i+4], lower(b[i+5])
		b = b[i+6:]
		switch {
		case high < '2' || high > '7' || high == '7' && low == 'f':
		case high == '2' && (low == '2' || low == '6' || low == '7'), high == '3' && (low == 'c' || low == 'e'), high == '5' && low == 'c':
		default:
			return true
		}
	}
}

// escaped reports whether b may hold the literal with escapes in it.
func escaped(literal, b []byte) bool {
	for _, c := range literal {
		if c < ' ' || c >= 0x80 || bytes.IndexByte([]byte(`"\/<>&'`), c) >= 0 {
			return bytes.IndexByte(b, '\\') >= 0
		}
	}
	return false
}

const (
	// shortest is the least length of a run that may be a builtin secret: then one
	// of the eight-byte words at multiples of eight lies in it.
	shortest = 15
	// lowest is the least byte of a run: below it are controls, space, ! and ".
	lowest = '#'
	ones   = 0x0101010101010101
	highs  = 0x80 * ones
)

// breaks sets the high bit of each of the eight bytes of x that is below lowest.
func breaks(x uint64) uint64 { return ^((x | highs) - lowest*ones) &^ x & highs }

// reach is how far from the step in which a window ends a candidate run may begin:
// candidateAfter looks 32 bytes back.
const reach = step + 40

// candidate reports whether a run of at least 15 bytes without a break may be a
// builtin secret, by a mark in it or before it, or a URL may have a password. Every byte is
// looked at once, but for a fixed number of them, so that no input takes quadratic time.
func (p *prefilter) candidate(b []byte) bool {
	done := 0  // up to where runs were looked at
	read := 0  // up to where URLs were read
	colon := 0 // the last one in these
	for i := p.next(b, 0); i < len(b); i = p.next(b, i+step) {
		near := max(i-2, 0)
		at := near
		for at > done && b[at-1] >= lowest {
			at--
		}
		for at = max(at, done); at < len(b) && at < i+reach; at++ {
			if b[at] < lowest {
				continue
			}
			to := runEnd(b, at)
			if to-at >= shortest && (candidateAfter(b[:at], to-at) || p.candidateIn(b[at:to])) {
				return true
			}
			at = to
		}
		done = at
		for url := near; url < i+step && url+3 < len(b); url++ {
			if b[url] != ':' || !slashes(b[url+1:url+4]) {
				continue
			}
			for read = max(read, url+3); read < len(b) && read < url+maxURL && inURL(b[read]); read++ {
				switch {
				case b[read] == ':':
					colon = read
				case b[read] == '@' && colon >= url+3:
					return true
				}
			}
		}
	}
	return false
}

// runEnd returns where the run ends that has the byte at i.
func runEnd(b []byte, i int) int {
	for i+8 <= len(b) {
		if m := breaks(binary.LittleEndian.Uint64(b[i : i+8])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(b) && b[i] >= lowest {
		i++
	}
	return i
}

// candidateAfter reports whether a run of n bytes is a candidate because of the text before
// it.
func candidateAfter(b []byte, n int) bool {
	if len(b) < 6 {
		return false
	}
	if 40 <= n && n <= 44 { // a key of AWS has no mark of its own
		near := b[max(len(b)-32, 0):]
		if bytes.Contains(near, []byte("ccess")) || bytes.Contains(near, []byte("CCESS")) {
			return true
		}
	}
	if b[len(b)-1] > ' ' {
		return false
	}
	// Blanks of any kind, and more than one, may be behind the word.
	word := bytes.TrimRight(b[max(len(b)-24, 0):], " \t\n\f\r")
	if len(word) < 5 {
		return false
	}
	switch last := word[len(word)-5:]; last[4] | 0x20 {
	case 'r':
		return bytes.EqualFold(last, []byte("earer"))
	case 'c':
		return bytes.EqualFold(last, []byte("basic"))
	}
	return bytes.HasSuffix(b, []byte("KEY-----\n"))
}

// maxURL is how far behind its beginning a URL is searched for a password.
const maxURL = 1024

// inURL reports whether a byte may be part of a URL.
func inURL(c byte) bool { return c > ' ' && c != '"' }

// slashes reports whether b may begin with the two slashes of a URL, which some
// encoders escape.
func slashes(b []byte) bool {
	slash := func(c byte) bool { return c == '/' || c == '\\' }
	return slash(b[0]) && slash(b[1]) && (b[0] == '/' && b[1] == '/' || slash(b[2]))
}

// bright sets the high bit of each byte of x that may be the rare byte of a mark: from @ to
// O, and from g on. UUIDs and times have no such bytes.
func bright(x uint64) uint64 {
	above := ((x &^ highs) + (0x80-'g')*ones) &^ x
	y := (x ^ '@'*ones) & (0xF0 * ones)
	caps := (y - ones) &^ y
	return (above | caps) & highs
}

// candidateIn looks for a mark in one run, which has at least 8 bytes. A mark that no token
// can follow is not looked at.
func (p *prefilter) candidateIn(run []byte) bool {
	dot := len(run) // the last one, once it is needed; -1: none
	for i := 0; i < len(run)-minToken; i += 8 {
		for found := bright(binary.LittleEndian.Uint64(run[i : i+8])); found != 0; found &= found - 1 {
			at := i + bits.TrailingZeros64(found)>>3
			if len(run)-at < minToken-1 {
				return false
			}
			marks := p.marks[run[at]]
			for k := range marks {
				if m := &marks[k]; !m.in(run, at) {
					continue
				} else if !m.dot {
					return true
				}
				if dot == len(run) {
					dot = bytes.LastIndexByte(run, '.')
				}
				if dot > at {
					return true
				}
			}
		}
	}
	return false
}

// isToken reports whether b begins with n bytes of a token.
func isToken(b []byte, n int) bool {
	if len(b) < n {
		return false
	}
	for _, c := range b[:n] {
		if !word(c) && c != '-' {
			return false
		}
	}
	return true
}

// wordBefore reports whether b ends within a word, unless that is an escape such as \n.
func wordBefore(b []byte) bool {
	n := len(b)
	return n > 0 && word(b[n-1]) && (n < 2 || b[n-2] != '\\')
}

func word(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// in reports whether one of the keys may be in b, with a colon after it.
func (k keys) in(b []byte) bool {
	for pos := 0; ; {
		i := bytes.IndexByte(b[pos:], ':')
		if i < 0 {
			return false
		}
		at := pos + i
		pos = at + 1
		for at > 0 && b[at-1] <= ' ' {
			at--
		}
		if at < 2 || b[at-1] != '"' {
			continue
		}
		at--
		for at > 0 && b[at-1] == '\\' {
			at--
		}
		if at == 0 {
			continue
		}
		for _, key := range k[lower(b[at-1])] {
			if at > len(key) && b[at-len(key)-1] == '"' && bytes.EqualFold(b[at-len(key):at], []byte(key)) {
				return true
			}
		}
		if b[at-1] < ' ' || b[at-1] >= 0x80 || escapedKey(b[:at]) {
			return true
		}
	}
}

// escapedKey reports whether the key that ends there has an escape in it: then it
// is looked at closely.
func escapedKey(b []byte) bool {
	from := bytes.LastIndexByte(b, '"')
	return from >= 0 && bytes.IndexByte(b[from+1:], '\\') >= 0
}
