package redact

import "encoding/binary"

// prefilter finds the places where a builtin secret may be. A text is read in
// pairs of bytes that do not overlap. The marks of secrets have three bytes or more that
// are rare in this order, so whichever way the pairs fall, two adjacent pairs show a mark.
// Each pair costs one load, and one branch is taken for sixteen bytes: that is why it is fast.
//
// A window is four bytes, two pairs. The low byte of a pair's entry has a bit for each group
// of windows in which it is the first half, the high byte for those in which it is the
// second. The windows of a group share a bit, so the first half of one may be followed by the
// second half of another: the groups of the marks are chosen such that this is rare too.
type prefilter struct {
	pairs [1 << 16]uint16
	marks [256][]mark // by their rare byte, in both letter cases when they fold
}

func newPrefilter(secrets []builtinRule) *prefilter {
	p := new(prefilter)
	for i := range secrets {
		for _, m := range secrets[i].marks {
			for k, windows := range m.windows() {
				for _, w := range windows {
					p.add(w[:2], 1<<m.groups[k], m.fold)
					p.add(w[2:], 0x100<<m.groups[k], m.fold)
				}
			}
			if m.rare != 0 {
				p.marks[m.rare] = append(p.marks[m.rare], m)
			}
			if m.fold && m.rare != 0 {
				upper := m.rare - 'a' + 'A'
				p.marks[upper] = append(p.marks[upper], m)
			}
		}
	}
	return p
}

// windows returns the windows of a mark, as its text may begin with a pair or within
// one. A dot is any byte, a question mark one of a URL or a token.
func (m *mark) windows() [2][]string {
	seek := m.seek
	if seek == "" {
		seek = m.text
	}
	switch {
	case len(seek) == 3 && m.odd != nil:
		return [2][]string{{"." + seek}, m.odd}
	case len(seek) == 3:
		return [2][]string{{"." + seek}, {seek + "?"}}
	case len(seek) == 4:
		return [2][]string{{seek}, {seek[1:] + "?"}}
	}
	return [2][]string{{seek[:4]}, {seek[1:5]}}
}

// add sets the bits of every pair that the two bytes match.
func (p *prefilter) add(w string, set uint16, fold bool) {
	matches := func(w, c byte) bool {
		return w == '.' || w == '?' && inURL(c) || w == c || fold && w == lower(c)
	}
	for b := range 256 {
		if !matches(w[1], byte(b)) {
			continue
		}
		for a := range 256 {
			if matches(w[0], byte(a)) {
				p.pairs[a|b<<8] |= set
			}
		}
	}
}

// step is how many bytes are looked at together.
const step = 16

// next returns the first step, from i on, in which a window ends, or that is not
// whole; at least len(b) when there is none. A window begins up to two bytes before
// its step.
func (p *prefilter) next(b []byte, i int) int {
	const groups = 0x00FF00FF00FF00FF
	s := &p.pairs
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
