package jsonv

// MarkRead counts the value, and all that is in it, as read. Raw, Text, JSON and Str do
// so by themselves; it is for who has read a value in another way, or leaves it out
// knowingly.
func (v Value) MarkRead() {
	if v.d != nil {
		v.d.nodes[v.i].read = true
	}
}

// Skip is MarkRead for members of an object: the decoder leaves them out knowingly.
func (v Value) Skip(names ...string) {
	for _, name := range names {
		v.Get(name).MarkRead()
	}
}

// Unread is a value that was not read: a string, or a container in which nothing was
// read and that has such strings.
type Unread struct {
	// Path is where it is: the keys, and * for the elements of an array.
	Path  []string
	Value Value
}

// Unread returns the values with unread strings of at least size bytes, the
// outermost containers in which nothing was read, in order. Strings for whose path skip
// returns true do not count.
func (d *Doc) Unread(size int, skip func(path []string) bool) []Unread {
	if !d.hasUnread(size) {
		return nil
	}
	w := unreader{d: d, size: uint32(size), skip: skip}
	w.walk(0)
	return w.found
}

// hasUnread is enough for most documents: one pass over the nodes, without paths. Most
// nodes are short, keys among them, so that is asked first.
func (d *Doc) hasUnread(size int) bool {
	nodes, least := d.nodes, uint32(size)
	for i := 0; i < len(nodes); {
		n := &nodes[i]
		switch {
		case n.end-n.start < least:
			i++
		case n.read:
			i = int(n.next)
		case n.kind == String && !n.key:
			return true
		default:
			i++
		}
	}
	return false
}

type unreader struct {
	d     *Doc
	size  uint32
	skip  func(path []string) bool
	at    []int32  // the keys that lead to the value at hand, element for an element of an array
	path  []string // the same, as far as it was asked for: few values are worth a copy of their keys
	found []Unread
}

// element stands for the key that an element of an array does not have.
const element = -1

// walk looks through the node i. untouched is true if nothing in it was read.
func (w *unreader) walk(i int32) (untouched bool) {
	nodes := w.d.nodes
	n := &nodes[i]
	switch {
	case n.read:
		return false
	case n.kind == String:
		if n.end-n.start >= w.size && !w.skip(w.named()) {
			w.add(i)
		}
		return true
	}
	before, untouched := len(w.found), true
	for c := i + 1; c < n.next; c = nodes[c].next {
		key := int32(element)
		if n.kind == Object {
			key = c
			c++
		}
		w.at = append(w.at, key)
		untouched = w.walk(c) && untouched
		w.at = w.at[:len(w.at)-1]
		w.path = w.path[:min(len(w.path), len(w.at))]
	}
	if untouched && len(w.found) > before {
		w.found = w.found[:before]
		w.add(i)
	}
	return untouched
}

// named returns the path of the value at hand.
func (w *unreader) named() []string {
	for _, key := range w.at[len(w.path):] {
		name := "*"
		if key != element {
			name = Key{Value{w.d, key}}.String()
		}
		w.path = append(w.path, name)
	}
	return w.path
}

func (w *unreader) add(i int32) {
	w.found = append(w.found, Unread{Path: append([]string(nil), w.named()...), Value: Value{w.d, i}})
}
