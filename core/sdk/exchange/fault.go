package exchange

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Fault reads an error: {code, type, message}. The class is its code in words, else its type, else, of Google's servers, its status. A number
// is the class of an error that has no word: OpenRouter repeats the status of HTTP.
func Fault(v jsonv.Value) (class string, text msg.Text) {
	for _, name := range [...]string{"code", "type", "status"} { // each is read only if there is none before it: the others are kept as unknown
		if class = ident.Of(v.Get(name)); class != "" {
			return class, v.Get("message").Text()
		}
	}
	return ident.OrNumber(v.Get("code")), v.Get("message").Text()
}
