package reassemble

import "strings"

// Agreed parses the Sec-WebSocket-Extensions of a server's response: the agreement for each
// direction. ok is false when it has an unknown extension, which may change the meaning of
// the bytes.
func Agreed(extensions []string) (client, server Deflate, ok bool) {
	for _, header := range extensions {
		for extension := range strings.SplitSeq(header, ",") {
			name, params, _ := strings.Cut(extension, ";")
			switch name = strings.TrimSpace(name); {
			case name == "":
				continue
			case !strings.EqualFold(name, "permessage-deflate") || client.On:
				return Deflate{}, Deflate{}, false
			}
			client, server = Deflate{On: true, Takeover: true}, Deflate{On: true, Takeover: true}
			for param := range strings.SplitSeq(params, ";") {
				key, _, _ := strings.Cut(param, "=")
				switch strings.ToLower(strings.TrimSpace(key)) {
				case "client_no_context_takeover":
					client.Takeover = false
				case "server_no_context_takeover":
					server.Takeover = false
				}
			}
		}
	}
	return client, server, true
}
