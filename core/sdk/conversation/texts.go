package conversation

import "github.com/earshot-dev/earshot/core/msg"

// Content is what a list of blocks has: texts, and files.
type Content struct {
	Texts
	Files []msg.Attachment
}

// Attach adds a file.
func (c *Content) Attach(f msg.Attachment) { c.Files = append(c.Files, f) }

// Fill makes it the content of a message.
func (c Content) Fill(m *msg.Message) { m.Content, m.Attachments = c.Joined(), c.Files }

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
