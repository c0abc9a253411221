package semconv

import (
	"encoding/json"
	"net"
	"strconv"

	"github.com/earshot-dev/earshot/core/msg"
)

// param is the name and the type of a request parameter.
type param struct {
	key    string
	kind   ValueKind
	latest bool // of the new repository alone
}

var params = map[string]param{
	msg.ParamStream:           {key: KeyRequestStream, kind: BoolValue},
	msg.ParamMaxTokens:        {key: KeyMaxTokens, kind: IntValue},
	msg.ParamTemperature:      {key: KeyTemperature, kind: FloatValue},
	msg.ParamTopP:             {key: KeyTopP, kind: FloatValue},
	msg.ParamTopK:             {key: KeyTopK, kind: FloatValue},
	msg.ParamSeed:             {key: KeySeed, kind: IntValue},
	msg.ParamFrequencyPenalty: {key: KeyFrequencyPenalty, kind: FloatValue},
	msg.ParamPresencePenalty:  {key: KeyPresencePenalty, kind: FloatValue},
	msg.ParamStopSequences:    {key: KeyStopSequences, kind: StringsValue},
	msg.ParamChoices:          {key: KeyChoiceCount, kind: IntValue},
	msg.ParamOutputType:       {key: KeyOutputType, kind: StringValue},
	msg.ParamReasoning:        {key: KeyReasoningLevel, kind: StringValue, latest: true},
}

// request adds the parameters of the request. It leaves out a parameter whose type is not
// the convention's, and, for those that the convention wants only when they differ from
// the default (one choice, no stream), the default.
func (p *Profile) request(a attrs, s *msg.Span) {
	for _, r := range s.Request {
		def, known := params[r.Key]
		if !known || def.latest && !p.dev {
			continue
		}
		if r.Key == msg.ParamTopK && p.dev {
			def.kind = IntValue
		}
		v, ok := parse(def.kind, r.Value)
		if !ok || r.Key == msg.ParamChoices && v.Int == 1 || r.Key == msg.ParamStream && !v.Bool {
			continue
		}
		a.add(def.key, v)
	}
}

func parse(kind ValueKind, text string) (v Value, ok bool) {
	v.Kind = kind
	var err error
	switch kind {
	case IntValue:
		v.Int, err = strconv.ParseInt(text, 10, 64)
	case FloatValue:
		v.Float, err = strconv.ParseFloat(text, 64)
	case BoolValue:
		v.Bool, err = strconv.ParseBool(text)
	case StringsValue:
		err = json.Unmarshal([]byte(text), &v.Strings)
	default:
		v.Str = text
	}
	return v, err == nil && text != ""
}

// Server calls add for where a request went, host:port; for nothing when that is empty.
func Server(address string, add func(key string, v Value)) {
	if address == "" {
		return
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return
	}
	a := attrs{add}
	a.str(KeyServerAddress, host)
	if n, err := strconv.ParseUint(port, 10, 16); err == nil {
		a.count(KeyServerPort, n)
	}
}
