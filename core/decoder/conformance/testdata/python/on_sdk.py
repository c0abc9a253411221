"""The same decoder on the SDK, core/sdk/python."""
import json

import decoder
import decoder_pb2 as pb
import earshot


class OnSDK(earshot.Decoder):
    def __init__(self, opened):
        if opened.options:
            raise ValueError("options: there are none")
        self.reference = decoder.Reference(opened)

    @property
    def state(self):
        return json.loads(self.reference.snapshot())

    @state.setter
    def state(self, saved):
        self.reference = decoder.Reference(pb.Open(snapshot=json.dumps(saved).encode()))

    def decode(self, frame, data, out):
        self.reference.decode(out.frame, frame, out.offset, data, out.result)

    def flush(self, out):
        self.reference.flush(out.frame, out.result)


earshot.serve(decoder.INFO, OnSDK)
