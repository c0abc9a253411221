package redact

import (
	"math/bits"
	"regexp/syntax"
)

// set is a set of bytes.
type set [4]uint64

func (s *set) add(c byte)      { s[c>>6] |= 1 << (c & 63) }
func (s *set) has(c byte) bool { return s[c>>6]>>(c&63)&1 != 0 }

// size is how many bytes are in it.
func (s *set) size() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

func (s *set) bytes() (out []byte) {
	for c := range 256 {
		if s.has(byte(c)) {
			out = append(out, byte(c))
		}
	}
	return out
}

const (
	longestPrefix = 12 // sets
	widestSet     = 64 // bytes
)

// prefix is a text, by the bytes that each of its places may have, with which a match begins.
type prefix struct {
	sets []set
	open bool // more may follow that is not known
}

// prefixesOf are the texts with which every match of an expression begins.
func prefixesOf(expr string) ([]prefix, error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	return prefixes(re), nil
}

func prefixes(re *syntax.Regexp) []prefix {
	unknown := []prefix{{open: true}}
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpWordBoundary, syntax.OpBeginText, syntax.OpBeginLine:
		return []prefix{{}}
	case syntax.OpLiteral:
		var sets []set
		for _, r := range re.Rune {
			var s set
			if r >= 0x80 {
				return []prefix{{sets: sets, open: true}}
			}
			s.add(byte(r))
			if re.Flags&syntax.FoldCase != 0 && letter(byte(r)) {
				s.add(byte(r) ^ 0x20)
			}
			sets = append(sets, s)
		}
		return []prefix{{sets: sets}}
	case syntax.OpCharClass:
		var s set
		n := 0
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if r >= 0x80 || n >= widestSet {
					if r == 0x17F || r == 0x212A { // these fold to s and k
						continue
					}
					return unknown
				}
				s.add(byte(r))
				n++
			}
		}
		return []prefix{{sets: []set{s}}}
	case syntax.OpCapture:
		return prefixes(re.Sub[0])
	case syntax.OpQuest:
		return append(prefixes(re.Sub[0]), prefix{})
	case syntax.OpPlus:
		return opened(prefixes(re.Sub[0]))
	case syntax.OpRepeat:
		out := []prefix{{}}
		for range min(re.Min, longestPrefix) {
			out = joined(out, prefixes(re.Sub[0]))
		}
		if re.Max != re.Min {
			out = opened(out)
		}
		return out
	case syntax.OpAlternate:
		var out []prefix
		for _, sub := range re.Sub {
			out = append(out, prefixes(sub)...)
		}
		return out
	case syntax.OpConcat:
		out := []prefix{{}}
		for _, sub := range re.Sub {
			out = joined(out, prefixes(sub))
		}
		return out
	}
	return unknown
}

func opened(all []prefix) []prefix {
	for i := range all {
		all[i].open = true
	}
	return all
}

// joined are the texts of which one of a is followed by one of b.
func joined(a, b []prefix) []prefix {
	var out []prefix
	for _, x := range a {
		if x.open || len(x.sets) >= longestPrefix {
			x.open = true
			out = append(out, x)
			continue
		}
		for _, y := range b {
			sets := append(append([]set(nil), x.sets...), y.sets...)
			out = append(out, prefix{sets[:min(len(sets), longestPrefix)], y.open || len(sets) > longestPrefix})
		}
	}
	return out
}
