package redact

import (
	"encoding/binary"
	"slices"
)

// prefilter finds the places where a secret may begin, by the prefixes of the expressions. A
// text is read in pairs of bytes that do not overlap. A prefix has three bytes or more, so
// whichever way the pairs fall, two adjacent pairs show it. Each pair costs one load, and one
// branch is taken for sixteen bytes: that is why it is fast.
//
// A window is four bytes of a prefix, two pairs. The low half of a pair's entry has a bit for each
// group of windows in which it is the first pair, the high half for those in which it is the
// second. The windows of a group share a bit, so the first half of one may be followed by the
// second half of another: the groups are chosen such that this is rare too.
type prefilter struct {
	pairs [1 << 16]uint64
	first [1 << 16]uint16 // by the hash of three bytes: the index in lists of the prefixes that begin with them
	lists []starts
	exact [1 << 15]uint64 // a bit for the wide hash of the four bytes of each window: one in twenty is set
	wide  uint64          // groups that have windows which are not in exact
}

// start is a prefix of a rule.
type start struct {
	sets []set
	rule int
}

// starts are the prefixes that begin with three bytes.
type starts struct {
	all  []start
	then [3]set // the bytes that follow in one of them
}

func (l *starts) add(s start) {
	l.all = append(l.all, s)
	for i := range l.then {
		next := anyByte
		if from := 3 + i; from < len(s.sets) {
			next = s.sets[from]
		}
		for k := range next {
			l.then[i][k] |= next[k]
		}
	}
}

// none reports whether the bytes at the begin of b, behind the first three, are in none of the prefixes.
func (l *starts) none(b []byte) bool {
	return len(b) >= 3+len(l.then) && !(l.then[0].has(b[3]) && l.then[1].has(b[4]) && l.then[2].has(b[5]))
}

const groups = 32

// halves are how often the first and the second pairs of the windows of a group are to be expected.
type halves [2]float64

func newPrefilter(all []start) *prefilter {
	p := &prefilter{lists: make([]starts, 1)}
	var load [groups]halves
	added := make(map[window]bool)
	for _, s := range all {
		for _, a := range s.sets[0].bytes() {
			for _, b := range s.sets[1].bytes() {
				for _, c := range s.sets[2].bytes() {
					at := &p.first[hash(uint32(a)|uint32(b)<<8|uint32(c)<<16)]
					if *at == 0 {
						p.lists = append(p.lists, starts{})
						*at = uint16(len(p.lists) - 1)
					}
					p.lists[*at].add(s)
				}
			}
		}
		for odd := range 2 {
			if w := rarest(s.sets, odd); !added[w] {
				p.add(w, bestGroup(&load, w))
				added[w] = true
			}
		}
	}
	return p
}

// window is two pairs of sets.
type window [4]set

// any is the set of all bytes.
var anyByte = set{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}

// rarest is the window of a prefix that is found least often, among those that begin at an
// even or at an odd byte of it. Bytes outside of the prefix may be any.
func rarest(sets []set, odd int) (best window) {
	least := 9.0
	for from := -2 + odd; from < len(sets)-1; from += 2 {
		w := window{anyByte, anyByte, anyByte, anyByte}
		for i := range w {
			if at := from + i; at >= 0 && at < len(sets) {
				w[i] = sets[at]
			}
		}
		if from < firstWindow {
			continue
		}
		if f := w.all(); f < least {
			best, least = w, f
		}
	}
	return best
}

// usual is how the traffic of agents looks: the windows of prefixes are not to be found in it. Of OTLP it has the attributes, in
// each of which "key": is, and no more: the choice among the windows is narrow.
const usual = `{"type":"assistant","message":{"id":"msg_01","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"I'll read the file, then I can update the function. The tests of the package are in the same directory and should be"},{"type":"tool_use","id":"toolu_01","name":"Bash","input":{"command":"cd /home/user/project && go test ./... 2>&1 | head -20","description":"Run tests"}}],"stop_reason":"end_turn","usage":{"input_tokens":4,"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"output_tokens":3,"service_tier":"standard"}},"session_id":"0f8fad5b-d9cb-469f-a165-70867728950e","sessionId":"","uuid":"","parentUuid":null,"timestamp":"2026-03-02T08:00:04.000Z","cwd":"/srv","version":"2.1.230","gitBranch":"main","isSidechain":false}
data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1772445601,"choices":[{"index":0,"delta":{"content":" which"},"finish_reason":null}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}
"attributes":[{"key":"a","value":{"stringValue":"b"}},{"key":"c","value":{"intValue":"0"}}]
https://example.com/docs/context https://github.com/owner/repo\n\tif err != nil {\n\t\treturn fmt.Errorf(\"open %s: %w\", path, err)\n\t}\n\nself.assertEqual(response.status_code, 200)\nimport { useState } from 'react'\nThe capacity of the orchard is checked before anything else is wanted; most of it was stored sometimes. `

// pair is how often the two sets are expected to follow each other.
func (w *window) pair(at int) float64 {
	n := 0
	for i := range len(usual) - 1 {
		if w[at].has(usual[i]) && w[at+1].has(usual[i+1]) {
			n++
		}
	}
	return (weight(&w[at])*weight(&w[at+1]) + float64(n)/float64(len(usual))) / 2
}

// all is how often the whole window is expected.
func (w *window) all() float64 {
	n := 0
	for i := range len(usual) - 3 {
		if w[0].has(usual[i]) && w[1].has(usual[i+1]) && w[2].has(usual[i+2]) && w[3].has(usual[i+3]) {
			n++
		}
	}
	return w.pair(0)*w.pair(2) + float64(n)/float64(len(usual))
}

// weight is how often one of the bytes of a set is expected at a place of the traffic, which is
// mostly English and code in JSON.
func weight(s *set) float64 {
	sum := 0.0
	for _, c := range s.bytes() {
		switch {
		case c == ' ':
			sum += 0.12
		case 'a' <= c && c <= 'z':
			sum += letters[c-'a']
		case c == '"':
			sum += 0.05
		case digit(c), slices.Contains([]byte(`:,.-_/\{}=`), c):
			sum += 0.012
		case 'A' <= c && c <= 'Z':
			sum += 0.003
		case c > ' ' && c < 0x7F:
			sum += 0.003
		default:
			sum += 0.0005
		}
	}
	return min(sum, 1)
}

// letters are how often those from a to z are in English, by their share of all bytes.
var letters = [26]float64{
	.065, .012, .022, .034, .102, .018, .016, .049, .056, .001, .006, .032, .019, .054, .060, .015, .001, .048, .051, .073, .022, .008, .019, .001, .016, .001,
}

// bestGroup enters a window into the group in which it causes the fewest false finds.
func bestGroup(load *[groups]halves, w window) (best int) {
	first, second, least := w.pair(0), w.pair(2), 9.0
	for g := range load {
		more := (load[g][0]+first)*(load[g][1]+second) - load[g][0]*load[g][1]
		if more < least {
			best, least = g, more
		}
	}
	load[best][0] += first
	load[best][1] += second
	return best
}

// hash is that of a window.
func hash(x uint32) uint16 { return uint16(x * 0x9E3779B1 >> 16) }

// wideHash is one of 21 bits.
func wideHash(x uint32) uint32 { return x * 0x9E3779B1 >> 11 }

// add sets the bits of every pair of a window.
func (p *prefilter) add(w window, group int) {
	a, b, c, d := w[0].bytes(), w[1].bytes(), w[2].bytes(), w[3].bytes()
	if n := len(a) * len(b) * len(c) * len(d); n > 1<<14 {
		p.wide |= 1 << group
	} else {
		for i := range n {
			x := uint32(a[i%len(a)]) | uint32(b[i/len(a)%len(b)])<<8 | uint32(c[i/len(a)/len(b)%len(c)])<<16 | uint32(d[i/len(a)/len(b)/len(c)])<<24
			h := wideHash(x)
			p.exact[h/64] |= 1 << (h % 64)
		}
	}
	for half := range 2 {
		for _, a := range w[2*half].bytes() {
			for _, b := range w[2*half+1].bytes() {
				p.pairs[int(a)|int(b)<<8] |= 1 << (group + groups*half)
			}
		}
	}
}

const (
	// step is how many bytes are looked at together.
	step = 16
	// firstWindow and lastWindow are where in a prefix a window begins, at least and at most.
	firstWindow, lastWindow = -1, longestPrefix - 2
	// behind is how far before a step a prefix may begin of which a window ends in it.
	behind = lastWindow + 4
)

// next returns the first step, from i on, in which a window ends, or that is not whole, and between which places the
// prefixes of these windows begin; a step of at least len(b) when there is none.
func (p *prefilter) next(b []byte, i int) (at, from, to int) {
	s := &p.pairs
	var last uint64 // the entry of the pair before
	if i >= 2 && i <= len(b) {
		last = s[binary.LittleEndian.Uint16(b[i-2:])]
	}
	for ; i+step <= len(b); i += step {
		x, y := binary.LittleEndian.Uint64(b[i:]), binary.LittleEndian.Uint64(b[i+8:])
		e0, e1, e2, e3 := s[uint16(x)], s[uint16(x>>16)], s[uint16(x>>32)], s[uint16(x>>48)]
		e4, e5, e6, e7 := s[uint16(y)], s[uint16(y>>16)], s[uint16(y>>32)], s[uint16(y>>48)]
		hit := last&(e0>>groups) | e0&(e1>>groups) | e1&(e2>>groups) | e2&(e3>>groups) | e3&(e4>>groups) | e4&(e5>>groups) | e5&(e6>>groups) | e6&(e7>>groups)
		if hit&(1<<groups-1) != 0 {
			if first, final := p.windows(b, i); first >= 0 {
				return i, first - lastWindow, final + 1 - firstWindow
			}
		}
		last = e7
	}
	return i, i - behind, len(b)
}

// windows returns where the first and the last of the windows begin that end in a step and are windows, not halves of
// two; -1 when there is none.
func (p *prefilter) windows(b []byte, i int) (first, final int) {
	first = -1
	for at := max(i-2, 0); at < i+step-2; at += 2 {
		x := binary.LittleEndian.Uint32(b[at:])
		both := p.pairs[uint16(x)] & (p.pairs[x>>16] >> groups) & (1<<groups - 1)
		if both == 0 {
			continue
		}
		if h := wideHash(x); both&p.wide != 0 || p.exact[h/64]&(1<<(h%64)) != 0 {
			if final = at; first < 0 {
				first = at
			}
		}
	}
	return first, final
}

// begins reports whether the three bytes at i may begin a prefix.
func (p *prefilter) begins(b []byte, i int) bool {
	return i+2 < len(b) && p.first[hash(three(b[i:]))] != 0
}

func three(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

// at calls f with the rules of which a prefix is at i; it goes on until f returns false.
func (p *prefilter) at(b []byte, i int, f func(rule int) bool) bool {
	if i+2 >= len(b) {
		return true
	}
	list := &p.lists[p.first[hash(three(b[i:]))]]
	if list.none(b[i:]) {
		return true
	}
	for k := range list.all {
		if s := &list.all[k]; s.in(b[i:]) && !f(s.rule) {
			return false
		}
	}
	return true
}

func (s *start) in(b []byte) bool {
	if len(b) < len(s.sets) {
		return false
	}
	for i := range s.sets {
		if !s.sets[i].has(b[i]) {
			return false
		}
	}
	return true
}
