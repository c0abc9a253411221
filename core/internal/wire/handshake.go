package wire

import goplugin "github.com/hashicorp/go-plugin"

// PluginName is the name under which a decoder process dispenses its service.
const PluginName = "decoder"

// Handshake is the agreement of both sides before anything else. It guards
// against starting a program that is no decoder; it is not a secret.
func Handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{
		ProtocolVersion:  1,
		MagicCookieKey:   "EARSHOT_DECODER",
		MagicCookieValue: "a77f6c1e5f0b4b3d9c1f",
	}
}
