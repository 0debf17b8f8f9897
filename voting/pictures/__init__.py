"""Drawings by models as pictures: screened, rendered in a limited process, checked."""
