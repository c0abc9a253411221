package msg

// Fold merges messages by session and key in the order of the list: the first
// occurrence decides the place, the most complete version is kept, and of two
// equally incomplete ones the later. It is the reference for the view of a reader of
// the tables sees, used by tests and by the conformance suite.
func Fold(in []Message) []Message {
	type place struct{ session, key string }
	at := make(map[place]int, len(in))
	out := make([]Message, 0, len(in))
	for _, m := range in {
		p := place{m.Session, m.Key}
		i, seen := at[p]
		switch {
		case !seen:
			at[p] = len(out)
			out = append(out, m)
		case out[i].Complete == Complete:
		case m.Complete >= out[i].Complete:
			out[i] = m
		}
	}
	return out
}
