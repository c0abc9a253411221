package jsonv

// Names are the names of members that are read together, in one pass over the object: for
// objects of many members of which a decoder looks for many.
type Names struct{ ofLength [maxName + 1][]name }

type name struct {
	text string
	last byte // of text: most names of one length differ in it
	at   int
}

const maxName = 31

// NamesOf returns the names, none of which is empty.
func NamesOf(names ...string) *Names {
	var n Names
	for i, s := range names {
		l := &n.ofLength[min(len(s), maxName)]
		*l = append(*l, name{s, s[len(s)-1], i})
	}
	return &n
}

// Read sets each value to the member of the name at its place, as Get does. The value of a
// name without a member is left as it is.
func (n *Names) Read(v Value, into ...*Value) {
	o := v.node()
	if o.kind != Object {
		return
	}
	nodes, data := v.d.nodes, v.d.data
	for i := v.i + 1; i < o.next; i = nodes[i+1].next {
		k := &nodes[i]
		key := data[k.start:k.end]
		if k.escaped {
			key = Key{Value{v.d, i}}.Bytes()
		}
		for _, name := range n.ofLength[min(len(key), maxName)] {
			if key[len(key)-1] == name.last && string(key) == name.text {
				into[name.at].d, into[name.at].i = v.d, i+1
				break
			}
		}
	}
}
