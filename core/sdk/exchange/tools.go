package exchange

import (
	"encoding/json"

	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Tools are the tools that a request offers to the model, each once, in order.
type Tools []tool

// tool is a definition as the GenAI convention writes it.
type tool struct {
	Type        string          `json:"type"` // function, or a tool of the provider's own
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // a JSON schema
}

// maxTools is the number of tools of a request that are kept.
const maxTools = 1024

// Add adds a tool; one without a name goes by its type.
func (t *Tools) Add(typ, name string, description, parameters jsonv.Value) {
	if typ == "" {
		typ = "function"
	}
	if name == "" {
		name = typ
	}
	if len(*t) >= maxTools {
		return
	}
	def := tool{Type: typ, Name: name, Description: description.Str()}
	if parameters.Is(jsonv.Object) {
		def.Parameters = parameters.Raw()
	}
	*t = append(*t, def)
}

// json is the list; nil when there is none.
func (t Tools) json() []byte {
	if len(t) == 0 {
		return nil
	}
	b, err := json.Marshal(t)
	if err != nil { // every part is a string, or JSON that was parsed
		return nil
	}
	return b
}
