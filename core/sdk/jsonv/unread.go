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
	path  []string
	found []Unread
}

// walk looks through the node i. untouched is true if nothing in it was read.
func (w *unreader) walk(i int32) (untouched bool) {
	n := &w.d.nodes[i]
	if n.read {
		return false
	}
	v := Value{w.d, i}
	before, untouched := len(w.found), true
	switch n.kind {
	case String:
		if n.end-n.start >= w.size && !w.skip(w.path) {
			w.add(v)
		}
		return true
	case Object:
		for k, m := range v.Members() {
			untouched = w.child(k.String(), m) && untouched
		}
	case Array:
		for e := range v.Elems() {
			untouched = w.child("*", e) && untouched
		}
	}
	if untouched && len(w.found) > before {
		w.found = w.found[:before]
		w.add(v)
	}
	return untouched
}

func (w *unreader) child(name string, v Value) (untouched bool) {
	w.path = append(w.path, name)
	untouched = w.walk(v.i)
	w.path = w.path[:len(w.path)-1]
	return untouched
}

func (w *unreader) add(v Value) {
	w.found = append(w.found, Unread{Path: append([]string(nil), w.path...), Value: v})
}
