package redact

import "encoding/binary"

// scent finds where it is worth looking for a builtin secret. A text is read in
// pairs of bytes that do not overlap. Secrets begin with three bytes or more that
// are rare in this order, so whichever way the pairs fall, two that follow each
// other give them away. Each pair costs one load whatever it holds, and one branch
// is taken for sixteen bytes: that is what makes it fast.
//
// The low byte of a pair's entry says in which groups of windows it is the first
// half, the high byte in which it is the second.
type scent [1 << 16]uint16

// windows are what gives a beginning away: two for each, as it may begin with a
// pair or within one. A dot is any byte, a question mark one of a URL or a token.
// The windows of a group share a bit, so the first half of one may be followed by
// the second half of another: they are grouped such that this is rare too.
var windows = [8][]string{
	{".sk-", ".hf_", ".xox", ".eyJ", ".AIz"},
	{"?IA?", ".://", `.:/\`, `.:\/`, `.:\\`},
	{"sk-?", "xox?", "eyJ?"},
	{"hf_?", "hp_?", "ho_?", "hu_?", "hs_?", "hr_?", "pm_?"},
	{"A?IA", "AIza", "KEY-", "EY--", "://?", `:/\/`, `:/\\`, `:\//`, `:\/\`, `:\\/`, `:\\\`},
	{"glpa", "lpat", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "ub_p", "b_pa", "npm_"},
}

// folded are windows in any letter case: of access, bearer and basic.
var folded = [8][]string{
	1: {".cce"},
	6: {"cces", "eare", "basi"},
	7: {"arer", "asic"},
}

func newScent() *scent {
	s := new(scent)
	for i := range windows {
		for _, w := range windows[i] {
			s.add(w[:2], 1<<i, false)
			s.add(w[2:], 0x100<<i, false)
		}
		for _, w := range folded[i] {
			s.add(w[:2], 1<<i, true)
			s.add(w[2:], 0x100<<i, true)
		}
	}
	return s
}

// add sets the bits of every pair that the two bytes stand for.
func (s *scent) add(w string, set uint16, fold bool) {
	stands := func(w, c byte) bool {
		return w == '.' || w == '?' && inURL(c) || w == c || fold && w == lower(c)
	}
	for b := range 256 {
		if !stands(w[1], byte(b)) {
			continue
		}
		for a := range 256 {
			if stands(w[0], byte(a)) {
				s[a|b<<8] |= set
			}
		}
	}
}

// step is how many bytes are looked at together.
const step = 16

// next returns the first step, from i on, in which a window ends, or that is not
// whole; at least len(b) when there is none. A window begins up to two bytes before
// its step.
func (s *scent) next(b []byte, i int) int {
	const groups = 0x00FF00FF00FF00FF
	var last uint64 // the entry of the pair before
	for ; i+step <= len(b); i += step {
		c := b[i : i+step]
		x := uint64(s[pair(c)]) | uint64(s[pair(c[2:])])<<16 | uint64(s[pair(c[4:])])<<32 | uint64(s[pair(c[6:])])<<48
		y := uint64(s[pair(c[8:])]) | uint64(s[pair(c[10:])])<<16 | uint64(s[pair(c[12:])])<<32 | uint64(s[pair(c[14:])])<<48
		if ((last|x<<16)&(x>>8)|(x>>48|y<<16)&(y>>8))&groups != 0 {
			return i
		}
		last = y >> 48
	}
	return i
}

func pair(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
