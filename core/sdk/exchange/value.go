package exchange

import "github.com/earshot-dev/earshot/core/msg"

// Join joins texts by newlines.
func Join(a, b msg.Text) msg.Text {
	if a.IsZero() {
		return b
	}
	return msg.Plain(string(b.Append(append(a.Append(nil), '\n'))))
}
