"""What labels are worth: how far judges agree, and models as judges against people."""
