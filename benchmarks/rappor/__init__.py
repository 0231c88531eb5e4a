"""How quick RAPPOR is: encoding, counting and decoding."""
