package redact

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// suspects reports whether b may hold a secret. It errs on the side of yes, and it
// is what every byte goes through.
func (r *Redactor) suspects(b []byte) bool {
	if r.builtin && r.scent.suspectRun(b) {
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
	// tail is how many bytes of a token follow what it begins with, at least.
	tail = 16
	// lowest is the least byte of a run: below it are controls, space, ! and ".
	lowest = '#'
	ones   = 0x0101010101010101
	highs  = 0x80 * ones
)

// breaks sets the high bit of each of the eight bytes of x that is below lowest.
func breaks(x uint64) uint64 { return ^((x | highs) - lowest*ones) &^ x & highs }

// reach is how far from the step in which a window ends the run may begin that it
// makes suspect: suspectAfter looks 32 bytes back.
const reach = step + 40

// suspectRun reports whether a run of at least 15 bytes without a break may be a
// builtin secret, by what is in it or before it, or a URL may have a password. No
// byte is looked at twice but for a fixed number of them, whatever b is made of.
func (s *scent) suspectRun(b []byte) bool {
	done := 0  // up to where runs were looked at
	read := 0  // up to where URLs were read
	colon := 0 // the last one in these
	for i := s.next(b, 0); i < len(b); i = s.next(b, i+step) {
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
			if to-at >= shortest && (suspectAfter(b[:at], to-at) || suspectIn(b[at:to])) {
				return true
			}
			at = to
		}
		done = at
		for p := near; p < i+step && p+3 < len(b); p++ {
			if b[p] != ':' || !slashes(b[p+1:p+4]) {
				continue
			}
			for read = max(read, p+3); read < len(b) && read < p+maxURL && inURL(b[read]); read++ {
				switch {
				case b[read] == ':':
					colon = read
				case b[read] == '@' && colon >= p+3:
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

// suspectAfter reports whether a run of n bytes is suspect because of what stands
// before it.
func suspectAfter(b []byte, n int) bool {
	if len(b) < 6 {
		return false
	}
	if 40 <= n && n <= 44 { // a key of AWS looks like nothing
		near := b[max(len(b)-32, 0):]
		if bytes.Contains(near, []byte("ccess")) || bytes.Contains(near, []byte("CCESS")) {
			return true
		}
	}
	if b[len(b)-1] > ' ' {
		return false
	}
	// Blanks of any kind, and more than one, may stand behind the word.
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

// rare are the bytes at which suspectIn looks closer: one of each beginning, and
// none that UUIDs and times are made of. They are @ to O, and from g on.
var rare = [256]bool{'I': true, 'J': true, 'K': true, 'g': true, 'h': true, 'k': true, 'p': true, 'x': true}

// bright sets the high bit of each byte of x that may be rare: from @ to O, and
// from g on.
func bright(x uint64) uint64 {
	above := ((x &^ highs) + (0x80-'g')*ones) &^ x
	y := (x ^ '@'*ones) & (0xF0 * ones)
	caps := (y - ones) &^ y
	return (above | caps) & highs
}

// suspectIn looks at one run, which has at least 8 bytes. What begins so late that
// no token can follow is none.
func suspectIn(run []byte) bool {
	dot := len(run) // the last one, once somebody asks
	for i := 0; i < len(run)-tail; i += 8 {
		for m := bright(binary.LittleEndian.Uint64(run[i : i+8])); m != 0; m &= m - 1 {
			at := i + bits.TrailingZeros64(m)>>3
			if !rare[run[at]] || !suspectAt(run[:at], run[at], run[at+1:]) {
				continue
			}
			if run[at] != 'J' {
				return true
			}
			if dot == len(run) {
				dot = bytes.LastIndexByte(run, '.')
			}
			if dot > at { // a web token has one
				return true
			}
		}
	}
	return false
}

// suspectAt reports whether a builtin secret may have its rare byte c between the
// two.
func suspectAt(before []byte, c byte, after []byte) bool {
	if len(after) < tail-2 {
		return false
	}
	next, prev := after[0], byte(0)
	if len(before) > 0 {
		prev = before[len(before)-1]
	}
	switch c {
	case 'k', 'K':
		return c == 'k' && prev == 's' && next == '-' && !wordBefore(before, 1) && tokens(after[1:], tail) || // sk-
			next|0x20 == 'e' && endsIn(bytes.TrimSuffix(before, []byte("_")), "access") || // secret_access_key=
			next == 'E' && bytes.HasPrefix(after, []byte("EY----"))
	case 'g':
		return next == 'h' && bytes.IndexByte([]byte("pousr"), after[1]) >= 0 && after[2] == '_' && tokens(after[3:], tail) || // ghp_
			next == 'i' && bytes.HasPrefix(after, []byte("ithub_pat_")) || next == 'l' && bytes.HasPrefix(after, []byte("lpat-"))
	case 'h':
		return next == 'f' && bytes.HasPrefix(after, []byte("f_")) && tokens(after[2:], tail)
	case 'p':
		return prev == 'n' && bytes.HasPrefix(after, []byte("m_")) && tokens(after[2:], tail)
	case 'x':
		return next == 'o' && after[1] == 'x' && after[3] == '-'
	case 'J':
		return prev == 'y' && endsIn(before, "ey") && !wordBefore(before, 2)
	case 'I':
		return next == 'A' && len(before) > 1 && before[len(before)-2] == 'A' && tokens(after[1:], tail) || // AKIA, ASIA
			prev == 'A' && bytes.HasPrefix(after, []byte("za"))
	}
	return false
}

// endsIn reports whether b ends in the word, in any letter case.
func endsIn(b []byte, word string) bool {
	return len(b) >= len(word) && bytes.EqualFold(b[len(b)-len(word):], []byte(word))
}

// tokens reports whether b begins with n bytes of a token.
func tokens(b []byte, n int) bool {
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

// wordBefore reports whether a word goes on before the last n bytes.
func wordBefore(b []byte, n int) bool {
	// An escape such as \n may stand before a secret.
	return len(b) > n && word(b[len(b)-n-1]) && (len(b) < n+2 || b[len(b)-n-2] != '\\')
}

func word(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// in reports whether one of the keys may stand in b, with a colon after it.
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
