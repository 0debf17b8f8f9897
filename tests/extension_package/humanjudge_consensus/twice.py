"""An extension that calls itself what another one is called."""

from humanjudge_consensus import Consensus as _Consensus


class Consensus(_Consensus):
    pass
