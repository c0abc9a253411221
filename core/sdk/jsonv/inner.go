package jsonv

// Inner parses the JSON that a string has into d, and returns it if it is an object or a list: a recorder may have
// written what was one as a text. The string then counts as read, and what is in it does not. Any other value is returned as it is.
func (d *Doc) Inner(v Value) Value {
	text := v.Escaped()
	if len(text) == 0 || text[0] != '{' && text[0] != '[' || d.Parse(v.Chars()) != nil {
		return v
	}
	v.MarkRead()
	return d.Root()
}
