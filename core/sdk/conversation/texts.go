package conversation

import "github.com/earshot-dev/earshot/core/msg"

// Texts joins texts by newlines. One text is not copied.
type Texts struct {
	N      int
	one    msg.Text
	joined []byte
}

// Add appends a text.
func (t *Texts) Add(text msg.Text) {
	switch t.N++; t.N {
	case 1:
		t.one = text
	case 2:
		t.joined = text.Append(append(t.one.Append(nil), '\n'))
	default:
		t.joined = text.Append(append(t.joined, '\n'))
	}
}

// Joined returns the texts.
func (t *Texts) Joined() msg.Text {
	if t.N > 1 {
		return msg.Plain(string(t.joined))
	}
	return t.one
}
